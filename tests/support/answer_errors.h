// How far an answer is from the reference, each error relative to the scale of the problem.
#pragma once

#include "solver/problem/contact_solution.h"
#include "tests/support/golden_problem.h"
#include "tests/support/primal_problem.h"

namespace sap::test {

struct AnswerErrors {
  double cost{0};      // excess over the optimum
  double gradient{0};  // |D grad| over max(|D A v|, |D J' gamma|)
  double velocity{0};  // |v - v_ref|_A over the largest of |v_ref|_A, |v*|_A, |v_ref - v*|_A
  double cone{0};      // farthest impulse outside the cone over the largest impulse
  double generalized_impulse{0};  // |D J' (gamma - gamma_ref)|
  double momentum_balance{0};     // |D (A (v - v*) - J' gamma)|

  double Largest() const;
};

// Judged in 80-bit arithmetic. Impulses of redundant contacts are ill-conditioned one by one, so
// J' gamma is compared. What is smaller than the momentum of 1e-9 m/s counts as that.
AnswerErrors Judge(const PrimalProblem& problem, const Reference& reference,
                   const ContactSolution& solution);

// The largest of |v_ref|_A, |v*|_A and |v_ref - v*|_A, which velocity errors are relative to.
double VelocityScale(const PrimalProblem& problem, const Reference& reference);

// Bound on |v - v_opt|_A by the certificates of all islands.
double CertifiedVelocityError(const ContactSolution& solution);

}  // namespace sap::test
