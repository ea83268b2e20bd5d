// Derivatives of the solution of a contact problem.
//
// At the solution g(v; theta) = A (v - v*) - J' gamma(J v + b; theta) = 0 and
// dg/dv = H = A + J' G J.
//
//   reverse   s = v_bar + J' (v_c_bar - G gamma_bar),   H lambda = s
//             dL/d theta = -lambda' dg/d theta + terms of the outputs at fixed v
//   forward   H dv = -dg/d theta d theta
//
// Each island is polished by one plain Newton step and factored once. Islands are differentiated
// concurrently; the bits do not depend on the number of threads.
#pragma once

#include <span>

#include "solver/problem/contact_solution.h"
#include "solver/problem/derivatives.h"
#include "solver/problem/solver_options.h"

namespace sap {

class ContactProblem;

// The relative tolerance of solves for derivatives where none is given.
inline constexpr double kDerivativeTolerance = 1e-10;

struct DerivativeOptions {
  bool hold_delassus{false};  // w does not follow J and A; CheckHeldDelassus must hold
};

// As Solver::Differentiate, on the calling thread with fresh workspaces, whatever memory it takes.
// The solution may be null.
Derivatives Differentiate(const ContactProblem& problem, const SolverOptions& options,
                          std::span<const Cotangent> cotangents,
                          std::span<const ProblemDifferential> directions = {},
                          const DerivativeOptions& derivative_options = {},
                          ContactSolution* solution = nullptr);

}  // namespace sap
