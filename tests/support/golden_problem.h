// Problems with certified solutions, read from the files of tests/data or, where an environment
// variable names a larger set, from there. See tests/data/README.md.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/problem_arrays.h"

namespace sap::test {

// Which problems: each set has a directory of its own.
enum class GoldenSet {
  kFriction,     // friction contacts alone: tests/data, or SAP_PROBLEMS_DIR
  kConstraints,  // every constraint: tests/data/constraints, or SAP_PROBLEMS_CONSTRAINTS_DIR
  kSoft,         // coupled trees: tests/data/soft, or SAP_PROBLEMS_SOFT_DIR
  kStiff,        // small regularization: tests/data/stiff, or SAP_PROBLEMS_STIFF_DIR
  kGradients,    // derivatives (golden_gradients.h): tests/data/gradients, or
                 // SAP_PROBLEMS_GRADIENTS_DIR
};

struct Reference {
  std::vector<double> velocity, impulse, angular_impulse, row_impulse;
  double cost{0};                      // [J]
  std::vector<int> island_of_tree;     // lowest tree of the island
  double velocity_error_bound_rel{0};  // |v - v_opt|_A over the largest norm of v, v*, v - v*
  int iterations_of_plain_newton{0};   // from the guess to 1e-6, without islands
};

struct GoldenProblem {
  ProblemArrays arrays;
  Reference reference;
  std::vector<double> drake_velocity;  // empty unless of the Drake family
};

// Names of the problems, without directory and suffix, sorted; those that begin with prefix only.
std::vector<std::string> GoldenNames(const std::string& prefix = "",
                                     GoldenSet set = GoldenSet::kFriction);

// The name of a problem as part of a test's, where only letters, digits and _ are allowed.
std::string NameOfGolden(const testing::TestParamInfo<std::string>& info);

// The file of a problem, from tests/data if the larger set lacks it. Fails the test where there is
// none.
std::filesystem::path GoldenPath(const std::string& name, GoldenSet set);

// Reads a problem by its name, from tests/data if the larger set lacks it. Fails the test where it
// cannot be read.
GoldenProblem LoadGolden(const std::string& name, GoldenSet set = GoldenSet::kFriction);

}  // namespace sap::test
