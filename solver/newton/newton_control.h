// When Newton's method on one island ends, searches and sweeps: what is decided from its norms.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "solver/newton/sap_data.h"
#include "solver/parallel/stop_token.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"

namespace sap {

// Slope at which a line search ends, relative to the one it starts from. The paper's method counts
// on an exact search; the accelerated one needs no more than this for the same number of
// iterations.
inline constexpr double kPlainSearchTolerance = 1e-10;
inline constexpr double kAcceleratedSearchTolerance = 0.1;

// Sweeps go on down to this residual: in small islands a sweep costs as much as it saves once the
// modes have settled.
inline constexpr int kLargeIslandTrees = 300;
inline constexpr double kLeastSweptResidual = 1e-2;
inline constexpr double kLeastSweptResidualLarge = 1e-4;
// Two steps in a row shorter than this, and the sweeps pause for three.
inline constexpr double kShortStep = 0.1;

// Steps without progress of cost and gradient that rounding errors must explain.
inline constexpr int kStalledSteps = 3;

inline double RelativeGradient(const IslandNorms& norms) {
  if (!norms.finite) return std::numeric_limits<double>::infinity();
  const double scale = std::max(norms.momentum, norms.impulse);
  return scale > 0 ? norms.gradient / scale : 0.0;
}

inline double AbsoluteTolerance(const IslandView& view, const SolverOptions& options) {
  return options.absolute_speed_tolerance * std::sqrt(view.constants().trace_A);
}

inline bool MeetsTolerance(const IslandNorms& norms, double absolute_tolerance,
                           const SolverOptions& options) {
  return norms.meets_in_norm_of_A &&
         norms.gradient <= absolute_tolerance +
                               options.relative_tolerance * std::max(norms.momentum, norms.impulse);
}

// Decides after which Newton steps to sweep.
class SweepGuard {
 public:
  SweepGuard(const IslandView& view, const SolverOptions& options)
      : enabled_(options.newton == NewtonMethod::kAccelerated),
        least_residual_(view.range().num_trees() < kLargeIslandTrees ? kLeastSweptResidual
                                                                     : kLeastSweptResidualLarge) {}

  bool ShouldSweep(double residual, double alpha) {
    short_steps_ = alpha < kShortStep ? short_steps_ + 1 : 0;
    if (pause_ > 0) --pause_;
    if (short_steps_ == 2) {
      short_steps_ = 0;
      pause_ = 3;
    }
    return enabled_ && pause_ == 0 && residual > least_residual_;
  }

 private:
  const bool enabled_;
  const double least_residual_;
  int short_steps_{0};
  int pause_{0};
};

// Notices when neither cost nor gradient come down any more. Rounding errors of a cost are in
// proportion to the sizes of its terms, not to their sum.
class StallDetector {
 public:
  explicit StallDetector(const IslandNorms& norms)
      : best_cost_(norms.cost), last_cost_size_(norms.cost_size), best_gradient_(norms.gradient) {}

  bool Stalled(const IslandNorms& norms) {
    const double least_decrease = 4 * std::numeric_limits<double>::epsilon() * last_cost_size_;
    const bool progress =
        norms.cost < best_cost_ - least_decrease || norms.gradient < 0.5 * best_gradient_;
    steps_ = progress ? 0 : steps_ + 1;
    best_cost_ = std::min(best_cost_, norms.cost);
    last_cost_size_ = norms.cost_size;
    best_gradient_ = std::min(best_gradient_, norms.gradient);
    return steps_ >= kStalledSteps;
  }

 private:
  double best_cost_;  // rounding can make costs swing
  double last_cost_size_;
  double best_gradient_;
  int steps_{0};
};

// Decides when to try longer steps than the line search allows, in islands with curved laws
// (laws/hunt_crossley.h): where it allows less than a tenth of one. A trial may take so many
// iterations to come below the cost that the shorter step would have reached or, where rounding
// errors hide what that step gains, to halve the gradient; if it does not, it is taken back, and 1,
// 2, 4, ... steps without one follow.
class TrialControl {
 public:
  bool active() const { return left_ > 0; }

  // Whether a trial may begin, where the line search allows a step of alpha.
  bool MayBegin(double alpha) {
    if (pause_ == 0) return alpha < kShortStep;
    --pause_;
    return false;
  }
  // Begins a trial at an iterate with these norms.
  void Begin(const IslandNorms& norms, double alpha, double slope_at_zero) {
    const double decrease = -kShareOfDecrease * alpha * slope_at_zero;
    const double rounding = 4 * std::numeric_limits<double>::epsilon() * norms.cost_size;
    const bool is_hidden = !(decrease > rounding);
    cost_to_beat_ = is_hidden ? norms.cost + rounding : norms.cost - decrease;
    gradient_to_beat_ = is_hidden ? 0.5 * norms.gradient : std::numeric_limits<double>::infinity();
    left_ = kIterations;
  }
  // Whether an active trial goes on after an iteration; it ends where it has succeeded.
  bool GoesOn(const IslandNorms& norms) {
    if (norms.cost <= cost_to_beat_ && norms.gradient <= gradient_to_beat_) {
      left_ = 0;
      next_pause_ = 1;
      return true;
    }
    return --left_ > 0;
  }
  void TakeBack() {
    left_ = 0;
    pause_ = next_pause_;
    next_pause_ = std::min(2 * next_pause_, kMostPause);
  }

 private:
  static constexpr int kIterations = 16;
  static constexpr int kMostPause = 16;
  // Along a parabola the step to its least value gains half of this times alpha times the slope.
  static constexpr double kShareOfDecrease = 0.25;

  double cost_to_beat_{0}, gradient_to_beat_{0};
  int left_{0};
  int pause_{0}, next_pause_{1};
};

inline SolveStatus StatusOf(StopReason reason) {
  return reason == StopReason::kCancelled ? SolveStatus::kCancelled : SolveStatus::kDeadline;
}

// Reported numbers of an iterate, without its status. Norms and bound are in the unit of mass.
inline void ReportIterate(const IslandNorms& norms, double gap_bound, double mass_unit,
                          IslandReport* report) {
  report->momentum_residual = RelativeGradient(norms);
  report->cost = norms.cost * mass_unit;
  report->optimality_gap_bound = gap_bound * mass_unit;
}

// The decisions of one island, whether it is solved alone or in a lane of a vector: they depend on
// the norms of its iterates and on its step lengths.
class NewtonControl {
 public:
  NewtonControl(const IslandView& view, const SolverOptions& options)
      : options_(options),
        constants_(view.constants()),
        absolute_tolerance_(AbsoluteTolerance(view, options)),
        guard_(view, options) {}

  IslandNorms norms;  // of the current iterate
  IslandReport report;

  bool ended() const { return ended_; }
  bool Converged() const { return MeetsTolerance(norms, absolute_tolerance_, options_); }

  // Whether there can be iterations from the first iterate.
  bool Starts() {
    if (!norms.finite || !constants_.representable) return End(SolveStatus::kNumericalFailure);
    stall_.emplace(norms);
    return true;
  }
  // Whether there is another iteration. `stop` is whether one was requested, and why.
  bool GoesOn(std::optional<StopReason> stop) {
    if (Converged()) return End(SolveStatus::kConverged);
    if (report.iterations >= options_.max_iterations) return End(SolveStatus::kIterationLimit);
    return !stop || End(StatusOf(*stop));
  }
  // Whether a sweep follows a step of this length.
  bool ShouldSweep(double alpha) { return guard_.ShouldSweep(RelativeGradient(norms), alpha); }
  // Whether rounding errors have allowed no progress for some steps.
  bool Stalls() {
    return !Converged() && stall_->Stalled(norms) && !End(SolveStatus::kStalledAtRoundoff);
  }
  // Always false, the answer to whether it goes on.
  bool End(SolveStatus status) {
    report.status = status;
    ended_ = true;
    return false;
  }
  // A cancellation cuts off anything that it meets, so that none of the report means anything.
  void Certify(double gap_bound, bool cancelled) {
    ReportIterate(norms, gap_bound, constants_.mass_unit, &report);
    if (cancelled) report.status = SolveStatus::kCancelled;
  }

 private:
  const SolverOptions& options_;
  const IslandConstants& constants_;
  const double absolute_tolerance_;
  SweepGuard guard_;
  std::optional<StallDetector> stall_;
  bool ended_{false};
};

}  // namespace sap
