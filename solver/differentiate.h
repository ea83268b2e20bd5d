// Derivatives of the solution of a contact problem.
//
// At the solution g(v; theta) = A (v - v*) - J' gamma(J v + b; theta) = 0 and dg/dv = H = A + J' G J.
//
//   reverse   s = v_bar + J' (v_c_bar - G gamma_bar),   H lambda = s
//             dL/d theta = -lambda' dg/d theta + terms of the outputs at fixed v
//   forward   H dv = -dg/d theta d theta
//
// Each island is polished by one plain Newton step and factored once. Islands are differentiated
// concurrently; the bits do not depend on the number of threads.
#pragma once

#include <span>
#include <vector>

#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/problem_differential.h"

namespace sap {

// dL/d(output), in the shape of ContactSolution. Empty arrays are 0.
struct Cotangent {
  std::span<const double> velocity{};
  std::span<const double> impulse{};
  std::span<const double> contact_velocity{};
  std::span<const double> row_impulse{};
  std::span<const double> row_velocity{};
  std::span<const double> angular_impulse{};
  double cost{0};
};

// d(output) along a direction of the problem.
struct Tangent {
  std::vector<double> velocity;
  std::vector<double> impulse;
  std::vector<double> contact_velocity;
  std::vector<double> row_impulse;
  std::vector<double> row_velocity;
  std::vector<double> angular_impulse;
  double cost{0};
};

// dL/d(problem) of one cotangent.
struct Gradient {
  ProblemDifferential problem;
  std::vector<double> applied_impulse;  // dL/d(A v* at fixed A): lambda, less c (v - v*)
};

enum class AdjointStatus : uint8_t {
  kDifferentiated,
  kInaccurate,        // at an iterate that does not meet the tolerance
  kDeadline,          // not computed: 0
  kNumericalFailure,  // left the range of double precision: 0
};

struct DerivativeOptions {
  bool hold_delassus{false};
};

struct Derivatives {
  std::vector<Gradient> gradients;            // one per cotangent
  std::vector<Tangent> tangents;              // one per direction
  std::vector<double> kink_margin;            // per island, in [0, 1]
  std::vector<AdjointStatus> adjoint_status;  // per island
};

}  // namespace sap
