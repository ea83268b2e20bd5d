// Location of the test problems: the directory that SAP_PROBLEMS_DIR names, else tests/data.
#pragma once

#include <filesystem>
#include <string>

namespace sap::test {

// The file of a problem in this set, by name without suffix. It must be in tests/data at least.
std::filesystem::path ProblemPath(const std::string& name);

}  // namespace sap::test
