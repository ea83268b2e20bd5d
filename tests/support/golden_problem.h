// Contact problems with certified solutions, read from the files of tests/data or, where the
// environment variable SAP_PROBLEMS_DIR names a larger set, from there. See tests/data/README.md.
#pragma once

#include <string>
#include <vector>

#include "tests/support/problem_arrays.h"

namespace sap::test {

struct Reference {
  std::vector<double> velocity, impulse;
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
std::vector<std::string> GoldenNames(const std::string& prefix = "");

// Reads a problem by its name, from tests/data if the larger set lacks it. Fails the test where it
// cannot be read.
GoldenProblem LoadGolden(const std::string& name);

}  // namespace sap::test
