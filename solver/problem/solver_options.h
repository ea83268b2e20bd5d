// Options of a solve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <tl/expected.hpp>

#include "solver/problem/problem_error.h"

namespace sap {

enum class NewtonMethod : uint8_t {
  kPlain,        // Newton on the primal cost with exact line search, Algorithm 2 of the paper
  kAccelerated,  // primal-dual Hessian, Gauss-Seidel sweeps between the steps
  kGaussSeidel,  // sweeps alone: no factorization of the whole, many more iterations
};

// Which islands the accelerated method hands over to the interior-point method
// (newton/interior_point.h), where they have inequalities and none of the laws of Hunt & Crossley.
enum class InteriorPoint : uint8_t {
  kNever,
  kAuto,    // after some iterations, fewer where R is small; with exact friction only there
  kAlways,  // all that the guess does not solve
};

// Exact Coulomb friction in place of the convex model, by rounds of convex solves
// (newton/coulomb_rounds.h) or the interior-point method.
struct CoulombFriction {
  uint32_t max_rounds{100};  // after the first solve, per island
  // eps_r of the exact momentum balance [-]. Absent: relative_tolerance.
  std::optional<double> tolerance{};
};

// A bound on how far each island moves within a horizon, where frames, target velocities and loads
// stay as they are (newton/rest_certificate.h).
struct Rest {
  double horizon{1};  // [s]
};

struct SolverOptions {
  // Stop when |D grad| <= eps_a + eps_r max(|D A v|, |D J' gamma|) with D = diag(A)^-1/2, for every
  // island by itself.
  double relative_tolerance{1e-6};         // eps_r [-]
  double absolute_speed_tolerance{1e-14};  // eps_a = this x sqrt(trace A) [m/s]
  int max_iterations{500};                 // Newton iterations per island
  bool islands{true};                      // false: all trees with constraints as one
  NewtonMethod newton{NewtonMethod::kAccelerated};
  InteriorPoint interior_point{InteriorPoint::kAuto};  // of the accelerated method
  std::optional<CoulombFriction> coulomb{};            // absent: the convex model
  std::optional<Rest> rest{};                          // absent: no such bound
  // Bound of the memory of the factorizations of one solve, on all threads together.
  size_t max_factor_bytes{std::numeric_limits<size_t>::max()};
};

// Whether islands may be handed over to the interior-point method at all.
inline bool MayHandOver(const SolverOptions& options) {
  return options.newton == NewtonMethod::kAccelerated &&
         options.interior_point != InteriorPoint::kNever;
}

// Predicted time with these options as a multiple of that with the default ones: rounds of exact
// Coulomb friction take some three convex solves where contacts slide, ten in piles in motion.
inline double RelativeWork(const SolverOptions& options) { return options.coulomb ? 4.0 : 1.0; }

// Tolerances and rounds are in their ranges; an error names the field of SolveOptions.
tl::expected<void, ProblemError> CheckOptions(const SolverOptions& options);

}  // namespace sap
