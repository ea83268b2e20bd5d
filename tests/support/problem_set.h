// Location of the test problems: the directory that SAP_PROBLEMS_DIR names, else tests/data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sap::test {

// The file of a problem in this set, by name without suffix. It must be in tests/data at least.
std::filesystem::path ProblemPath(const std::string& name);

// The files of all problems with every kind of constraint, and of those with coupled trees, sorted:
// in the directories that SAP_PROBLEMS_CONSTRAINTS_DIR and SAP_PROBLEMS_SOFT_DIR name, else in
// tests/data/constraints and tests/data/soft.
std::vector<std::filesystem::path> ConstraintProblemPaths();

}  // namespace sap::test
