// How far an answer of a problem with every kind of constraint is from the reference, each error
// relative to the scale of the problem.
#pragma once

#include "solver/problem/contact_solution.h"
#include "tests/support/constrained_problem.h"
#include "tests/support/golden_problem.h"

namespace sap::test {

struct ConstraintErrors {
  double cost{0};           // excess over the optimum
  double gradient{0};       // |D grad| over max(|D A v|, |D J' gamma|)
  double velocity{0};       // |v - v_ref|_A over the largest of |v_ref|_A, |v*|_A, |v_ref - v*|_A
  double admissibility{0};  // farthest impulse outside its set over the largest impulse
  double law{0};            // farthest impulse from its law at v, over itself, beyond rounding
  double generalized_impulse{0};  // |D J' (gamma - gamma_ref)|
  double momentum_balance{0};     // |D (A (v - v*) - J' gamma)|
};

// Judged in 80-bit arithmetic. What is smaller than the momentum of 1e-9 m/s counts as that.
ConstraintErrors JudgeConstraints(const ConstrainedProblem& problem, const Reference& reference,
                                  const ContactSolution& solution);

// The largest of |v_ref|_A, |v*|_A and |v_ref - v*|_A, which velocity errors are relative to.
long double VelocityScale(const ConstrainedProblem& problem, const Reference& reference);

}  // namespace sap::test
