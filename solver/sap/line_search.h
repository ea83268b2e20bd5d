// Exact line search: the root of the slope of the cost along the Newton step.
//
//   f(alpha) = d/d alpha l(v + alpha dv)
//            = dv' A (v - v*) + alpha dv' A dv - (J dv)' gamma(v_c + alpha J dv)
//
// The terms of A and of bilateral rows are linear in alpha and are summed once. f increases and has
// a kink wherever a constraint changes its region, so Newton's method on f is kept
// inside a bracket and halved when it does not pay [Castro et al. 2021, Section IV-C]. An
// evaluation costs O(constraints).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/parallel/stop_token.h"
#include "solver/sap/sap_data.h"

namespace sap {

// The root of an increasing slope f with f(0) = f_zero < 0; slope_at(alpha) gives f and its
// derivative. Starts at 1, ends where |f| <= tolerance |f_zero| on the near side of the root, so
// that the cost is known to have fallen (on the far side only if the root is met much better),
// where |f| <= roundoff, what rounding errors of f explain, and after a bounded number of
// evaluations in any case.
template <typename SlopeAt>
double RootOfSlope(double f_zero, double tolerance, SlopeAt&& slope_at, double roundoff = 0) {
  constexpr int kMaxEvaluations = 100;
  constexpr double kFarSideTolerance = 1e-10;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = 0;           // f(low) < 0
  double high = kInfinity;  // f(high) > 0
  double alpha = 1;
  double last_size = kInfinity;
  for (int evaluation = 0; evaluation < kMaxEvaluations; ++evaluation) {
    const LineSlope slope = slope_at(alpha);
    const double f = slope.first;
    const double size = std::abs(f);
    if (size <= std::max(roundoff, kFarSideTolerance * -f_zero) ||
        (f <= 0 && size <= tolerance * -f_zero)) {
      return alpha;
    }
    (f < 0 ? low : high) = alpha;  // a slope that is not a number counts as too far
    const bool bracketed = std::isfinite(high);
    if (bracketed && high - low <= 4 * std::numeric_limits<double>::epsilon() * high) break;
    double next = alpha - f / slope.second;
    const bool slow = !(size <= 0.5 * last_size);
    last_size = size;
    if (!bracketed) {
      if (!(next > low && next < kInfinity) || slow) next = 2 * low;
    } else if (!(next > low && next < high) || slow) {
      next = 0.5 * (low + high);
      last_size = kInfinity;
    }
    alpha = next;
  }
  return low;
}

// Rounding errors of a sum of terms of these sizes altogether.
inline double RoundoffOf(double sum_of_sizes) {
  return 16 * std::numeric_limits<double>::epsilon() * sum_of_sizes;
}

struct LineSearchResult {
  double alpha{0};
  bool descends{true};  // false: the slope at 0 is not negative, which only rounding errors explain
};

// Searches from data.v along step->v. Needs momentum_change, gradient and v_c at data.v; fills the
// rest of the step. After a stop was requested the result means nothing.
LineSearchResult SearchAlongStep(const IslandView& view, double tolerance, const StopToken& stop,
                                 const SapData& data, SapStep* step, SapScratch* scratch);

}  // namespace sap
