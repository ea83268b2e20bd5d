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
#include <cstdint>
#include <limits>

#include "solver/newton/sap_data.h"
#include "solver/parallel/stop_token.h"

namespace sap {

// Finds the root of an increasing slope f with f(0) = f_zero < 0, one evaluation at a time. Starts
// at 1, ends where |f| <= tolerance |f_zero| on the near side of the root, so that the cost is
// known to have fallen (on the far side only if the root is met much better), where |f| <=
// roundoff, what rounding errors of f explain, and after a bounded number of evaluations in any
// case.
class SlopeRootSearch {
 public:
  SlopeRootSearch(double f_zero, double tolerance, double roundoff = 0)
      : size_at_end_(std::max(roundoff, kFarSideTolerance * -f_zero)),
        near_size_at_end_(tolerance * -f_zero) {}

  // Where to evaluate next, or the answer.
  double alpha() const { return alpha_; }

  // Takes f and its derivative at alpha(); true if the search has ended.
  bool EndsWith(const LineSlope& slope) {
    const double f = slope.first;
    const double size = std::abs(f);
    if (size <= size_at_end_ || (f <= 0 && size <= near_size_at_end_)) return true;
    (f < 0 ? low_ : high_) = alpha_;  // a slope that is not a number counts as too far
    const bool bracketed = std::isfinite(high_);
    const bool narrow =
        bracketed && high_ - low_ <= 4 * std::numeric_limits<double>::epsilon() * high_;
    if (narrow || ++evaluations_ == kMaxEvaluations) {
      alpha_ = low_;
      return true;
    }
    double next = alpha_ - f / slope.second;
    const bool slow = !(size <= 0.5 * last_size_);
    last_size_ = size;
    if (!bracketed) {
      if (!(next > low_ && next < kInfinity) || slow) next = 2 * low_;
    } else if (!(next > low_ && next < high_) || slow) {
      next = 0.5 * (low_ + high_);
      last_size_ = kInfinity;
    }
    alpha_ = next;
    return false;
  }

 private:
  static constexpr int kMaxEvaluations = 100;
  static constexpr double kFarSideTolerance = 1e-10;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  double size_at_end_;
  double near_size_at_end_;
  double low_{0};           // f(low) < 0
  double high_{kInfinity};  // f(high) > 0
  double alpha_{1};
  double last_size_{kInfinity};
  int evaluations_{0};
};

// The root, where slope_at(alpha) gives f and its derivative.
template <typename SlopeAt>
double RootOfSlope(double f_zero, double tolerance, SlopeAt&& slope_at, double roundoff = 0) {
  SlopeRootSearch search(f_zero, tolerance, roundoff);
  while (!search.EndsWith(slope_at(search.alpha()))) {
  }
  return search.alpha();
}

// Rounding errors of a sum of terms of these sizes altogether.
inline double RoundoffOf(double sum_of_sizes) {
  return 16 * std::numeric_limits<double>::epsilon() * sum_of_sizes;
}

// The slope at 0, and what rounding errors may make of it.
struct StartingSlope {
  double f{0};
  double roundoff{0};
};

// Slope at alpha = 0 for n velocities, and its rounding error, from -grad l, A (v - v*) and the
// step.
template <typename Size>
StartingSlope SlopeAtStart(Size n, const double* descent, const double* change,
                           const double* step) {
  double f = 0;
  double sizes = 0;
  for (int i = 0; i < n; ++i) {
    f -= descent[i] * step[i];
    sizes += std::abs(step[i]) * (std::abs(change[i]) + std::abs(descent[i] + change[i]));
  }
  return {f, RoundoffOf(sizes)};
}

// The cost that is searched along a step: l, or l without the curvature of curved laws
// (laws/hunt_crossley.h), of which the line search knows nothing of what a further step would mend.
enum class SearchedCost : uint8_t { kTrue, kLinearized };

struct LineSearchResult {
  double alpha{0};
  bool descends{true};  // false: the slope at 0 is not negative, which only rounding errors explain
  double slope_at_zero{0};
};

// Searches from data.v along step->v. Needs momentum_change, gradient and v_c at data.v; fills the
// rest of the step. After a stop was requested the result means nothing.
template <typename View>
LineSearchResult SearchAlongStep(const View& view, double tolerance, const StopToken& stop,
                                 const SapData& data, SapStep* step, SapScratch* scratch,
                                 SearchedCost cost = SearchedCost::kTrue);

}  // namespace sap
