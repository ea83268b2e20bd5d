// Optima in 80-bit arithmetic of a problem and of problems near it, and a loss at them: the oracle
// for derivatives, which differences of it are compared with.
#pragma once

#include <Eigen/LU>

#include "solver/problem/contact_solution.h"
#include "tests/support/constrained_problem.h"
#include "tests/support/golden_gradient.h"
#include "tests/support/random_problem.h"

namespace sap::test {

// Newton's method with the Hessian of one problem, by differences, at a velocity near its optimum.
class ExactOptimum {
 public:
  ExactOptimum(const ConstrainedProblem& problem, const VectorL& near);

  // The optimum of this problem, or of one that differs little.
  VectorL Of(const ConstrainedProblem& problem) const;

 private:
  VectorL near_;
  Eigen::PartialPivLU<MatrixL> factor_;
};

// A cotangent of all outputs of a solution, terms of similar size.
CotangentArrays DrawCotangent(Random* random, const ContactSolution& solution);

// The loss L of a cotangent at the optimum of a problem. The cotangent has to outlive it.
class ExactLoss {
 public:
  ExactLoss(const ProblemArrays& arrays, const ContactSolution& solution,
            const CotangentArrays& cotangent);

  // The loss of a problem near the one that this was made of.
  long double At(const ProblemArrays& arrays) const;

 private:
  const CotangentArrays& cotangent_;
  ExactOptimum optimum_;
};

}  // namespace sap::test
