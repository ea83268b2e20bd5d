// Where the problems to test with are: the full set in the directory that SAP_PROBLEMS_DIR names,
// or else the ones that ship in tests/data.
#pragma once

#include <filesystem>
#include <string>

namespace sap::test {

// The file of a problem in this set, by name without suffix. It must be in tests/data at least.
std::filesystem::path ProblemPath(const std::string& name);

}  // namespace sap::test
