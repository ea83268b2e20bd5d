// A small problem that every rule accepts, to be changed by the tests of the rules.
#pragma once

#include "tests/support/problem_arrays.h"
#include "tests/support/random_problem.h"

namespace sap::test {

// Trees of 2 and 3 dofs, two bodies; three contacts by Jacobian, two between bodies.
inline ProblemArrays PlainProblem() {
  ProblemArrays arrays;
  Random random(1);
  arrays.AddTree(RandomDynamicsMatrix(&random, 2, 1, 2), UniformVector(&random, 2, -1, 1));
  arrays.AddTree(RandomDynamicsMatrix(&random, 3, 1, 2), UniformVector(&random, 3, -1, 1));
  arrays.AddBody(2, {1, 1, 1}, {0, 0, 1}, UniformVector(&random, 6, -1, 1));
  arrays.AddBody(3, {1, 2, 2}, {0, 1, 1}, UniformVector(&random, 6, -1, 1));
  const auto ones = [](int n) { return ProblemArrays::Jacobian::Ones(3, n); };
  arrays.AddContact(0, ones(2), 1, ones(3), {});
  arrays.AddContact(1, ones(3), 2, ones(6), {});
  arrays.AddContact(1, ones(3), {});
  arrays.AddBodyContact(0, 1, {0, 0.5, 1}, Eigen::Vector3d(2, -1, 2) / 3, {});
  arrays.AddBodyContact(1, -1, {0, 1, 0}, Eigen::Vector3d(-2, -2, 1) / 3, {});
  return arrays;
}

}  // namespace sap::test
