#include "solver/newton/sap_solver.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "solver/newton/accuracy_certificate.h"
#include "solver/newton/few_rows_view.h"
#include "solver/newton/gauss_seidel.h"
#include "solver/newton/interior_point.h"
#include "solver/newton/line_search.h"
#include "solver/newton/newton_control.h"
#include "solver/newton/rest_certificate.h"

namespace sap {

namespace {

// Where masses, stiffnesses or lever arms are many orders apart, rounding can make H indefinite.
// Its diagonal is then raised by these parts of itself until it is not: any positive definite
// matrix in place of H gives a step along which the cost falls.
constexpr double kLeastShift = 1e-15;
constexpr double kLargestShift = 1e-4;

// Whether |grad l|_{A^-1}, which bounds the error of v in the norm of A, is small against v or
// v - v*. Asked of coupled trees: D = diag(A)^-1/2 weighs a gradient along the rigid motions of a
// stiff body too little, by up to the root of the condition of D A D.
bool MeetsToleranceInNormOfA(const IslandView& view, const SolverOptions& options,
                             const StopToken& stop, SapData* data) {
  double v2 = 0;
  double change2 = 0;
  for (int i = view.range().velocity_begin; i < view.range().velocity_end; ++i) {
    v2 += data->v[i] * data->momentum[i];
    change2 += (data->v[i] - view.model.v_star()[i]) * data->momentum_change[i];
  }
  const double size = std::sqrt(std::max({v2, change2, 0.0}));
  return NormOfGradient(view, stop, data) <=
         AbsoluteTolerance(view, options) + options.relative_tolerance * size;
}

template <typename View>
IslandNorms EvaluateIterateOf(const View& view, const SolverOptions& options, const StopToken& stop,
                              SapData* data, SapScratch* scratch) {
  IslandNorms norms = Evaluate(view, data, scratch, stop);
  // Takes a substitution with A, so only where the other norms meet the tolerance.
  if (view.coupled() && MeetsTolerance(norms, AbsoluteTolerance(view, options), options)) {
    norms.meets_in_norm_of_A = MeetsToleranceInNormOfA(view, options, stop, data);
  }
  return norms;
}

// The gap bound of the iterate. Where the options ask for it, the drift of *report is set as well:
// it is that of numbers within the range of doubles alone.
template <typename View>
double CertifyIterate(const View& view, const SolverOptions& options, const IslandNorms& norms,
                      const StopToken& stop, SapData* data, SapScratch* scratch,
                      IslandReport* report) {
  if (!options.rest) return OptimalityGapBound(view, norms.cost, stop, data, scratch);
  double gradient_error = 0;
  const double bound = OptimalityGapBound(view, norms.cost, stop, data, scratch, &gradient_error);
  const bool failed = report->status == SolveStatus::kNumericalFailure;
  report->rest_drift =
      failed ? std::numeric_limits<double>::infinity()
             : RestDrift(view, options.rest->horizon, gradient_error, stop, *data, scratch);
  return bound;
}

bool HasCurvedLaws(const IslandView& view) {
  bool has = false;
  ForEachPool([&](auto pool) { has |= IsCurved(pool) && view.range().has(pool.kind()); });
  return has;
}

// Whether an iteration takes some 20 us at most. A deadline is then looked at between iterations
// only: each look reads the clock, and ten per iteration are 4 % of the time of small islands.
bool IsShort(const IslandRange& range) {
  constexpr int kMostVelocities = 48;
  constexpr int kMostConstraints = 64;
  return range.num_velocities() <= kMostVelocities && range.num_constraints() <= kMostConstraints;
}

// The Newton loop with what it carries from step to step.
template <typename View>
class IslandSolve {
 public:
  IslandSolve(const View& view, const SolverOptions& options, const StopToken& stop,
              const SweepOrder& sweep_order, const PlannedFactors& factorization,
              SapWorkspace* workspace)
      : view_(view),
        options_(options),
        stop_(stop),
        stop_within_(IsShort(view.range()) ? stop.WithoutDeadline() : stop),
        sweep_order_(sweep_order),
        factorization_(factorization),
        workspace_(*workspace),
        data_(workspace->data),
        step_(workspace->step),
        accelerated_(options.newton == NewtonMethod::kAccelerated),
        has_curved_laws_(accelerated_ && HasCurvedLaws(view)),
        control_(view, options),
        factor_(view, factorization, IsPreconditioned(factorization.plan, options), stop_within_,
                &report_.factorizations) {}

  IslandReport Run() {
    Iterate();
    double bound = CertifyIterate(view_, options_, norms_, stop_within_, &data_,
                                  &workspace_.scratch, &report_);
    if (interior_ != nullptr) {
      bound = std::min(bound, interior_->GapBound());
      EvaluateAtV();
    }
    control_.Certify(bound, stop_within_.Cancelled());
    return report_;
  }

  // The iterations alone, counted from those of the report on.
  IslandReport Continue(const IslandReport& report) {
    report_ = report;
    Iterate();
    return report_;
  }

 private:
  void Iterate() {
    EvaluateAtV();
    if (!control_.Starts()) return;
    const bool factorable = factorization_.plan != nullptr || IsDense(view_.graph, view_.range());
    const bool sweeps = options_.newton == NewtonMethod::kGaussSeidel || !factorable;
    report_.swept = sweeps;
    if (!control_.GoesOn(StopRequest())) return;
    if (accelerated_ && !sweeps) StartDualDirections();
    const double cost_of_guess = norms_.cost;
    do {
      if (!sweeps && interior_ == nullptr && HandsOverAfter(report_.iterations, options_, view_)) {
        if (!HandOver(cost_of_guess)) break;
        continue;
      }
      if (!(sweeps ? SweepAll() : TakeStep())) break;
    } while (control_.GoesOn(StopRequest()));
    // The best iterate is that before a trial which has not come to its end.
    if (trial_.active() && !control_.Converged()) TakeTrialBack();
  }

  std::optional<StopReason> StopRequest() const {
    if (!stop_.Requested()) return std::nullopt;
    return stop_.Reason();
  }

  // Solves by the interior-point method. Where that fails, goes on from the better of its iterate
  // and the one it was given. False if that was the end.
  bool HandOver(double cost_of_guess) {
    if (trial_.active()) TakeTrialBack();
    ForVelocities(view_, [&](int i) { workspace_.v_before[i] = data_.v[i]; });
    const IslandNorms before = norms_;
    const double bound_before =
        OptimalityGapBound(view_, norms_.cost, stop_within_, &data_, &workspace_.scratch);
    interior_ =
        std::make_unique<InteriorPointSolve>(view_, options_, stop_within_, &factor_, &workspace_);
    const InteriorPointEnd end = interior_->Run(&report_.iterations, &norms_);
    if (stop_within_.Cancelled()) return control_.End(SolveStatus::kCancelled);
    if (end == InteriorPointEnd::kConverged) return control_.End(SolveStatus::kConverged);
    if (end == InteriorPointEnd::kNoProgress) {
      if (!(norms_.cost <= before.cost)) GoBack(workspace_.v_before);
      StartDualDirections();
      return true;
    }
    const bool is_better = norms_.cost <= cost_of_guess && interior_->GapBound() < bound_before;
    if (is_better) {
      EvaluateAtV();
    } else {
      GoBack(workspace_.v_before);
    }
    return control_.End(end == InteriorPointEnd::kStopped ? StatusOf(stop_within_.Reason())
                                                          : SolveStatus::kIterationLimit);
  }

  // A Newton step, and a sweep after it where one is due; false if it was the last.
  bool TakeStep() {
    const StepStatus step = ComputeStep();
    if (step == StepStatus::kStopped) return control_.End(StatusOf(stop_within_.Reason()));
    if (step == StepStatus::kNotPositiveDefinite) {
      return trial_.active() ? TakeTrialBack() : control_.End(SolveStatus::kNumericalFailure);
    }
    const LineSearchResult search = Search(SearchedCost::kTrue);
    if (stop_within_.Requested()) return control_.End(StatusOf(stop_within_.Reason()));
    ++report_.iterations;
    if (!search.descends || search.alpha == 0) {
      return trial_.active() ? TakeTrialBack() : control_.End(SolveStatus::kStalledAtRoundoff);
    }
    if (trial_.active()) return TakeTrialStep(search.alpha);
    if (has_curved_laws_ && trial_.MayBegin(search.alpha)) {
      constexpr double kLonger = 2;
      const LineSearchResult longer = Search(SearchedCost::kLinearized);
      if (stop_within_.Requested()) return control_.End(StatusOf(stop_within_.Reason()));
      if (longer.alpha > kLonger * search.alpha) return BeginTrial(search, longer.alpha);
    }
    const double alpha = search.alpha;
    const bool sweep = control_.ShouldSweep(alpha);
    Advance(alpha);
    // A step of length one may have arrived. Any other has met a kink on its way and has not.
    const bool evaluated = !sweep || alpha == 1;
    if (!evaluated) {
      AdvanceConstraints(alpha);
    } else if (!EvaluateOrGoBack(workspace_.v_before)) {
      return false;
    }
    if (sweep && !(evaluated && control_.Converged())) {
      if (!SweepOnce(SweptGroups::kKinked)) return EndBefore(workspace_.v_before);
      if (!EvaluateOrGoBack(workspace_.v_before)) return false;
    }
    return !control_.Stalls();
  }

  // A sweep over all trees in place of a step; false if it was the last. Sweeps alone converge
  // slowly: that one makes little progress does not mean that rounding errors allow no more.
  bool SweepAll() {
    ++report_.iterations;
    if (!SweepOnce(SweptGroups::kAll)) return EndBefore(workspace_.v_before_sweep);
    return EvaluateOrGoBack(workspace_.v_before_sweep);
  }

  LineSearchResult Search(SearchedCost cost) {
    return SearchAlongStep(view_,
                           accelerated_ ? kAcceleratedSearchTolerance : kPlainSearchTolerance,
                           stop_within_, data_, &step_, &workspace_.scratch, cost);
  }

  // Takes a step as long as the cost without the curvature of curved laws allows, in place of
  // the one that was searched. A trial has no sweeps. Always true: there is another iteration.
  bool BeginTrial(const LineSearchResult& search, double longer_alpha) {
    ForVelocities(view_, [&](int i) {
      workspace_.v_before_sweep[i] = data_.v[i] + search.alpha * step_.v[i];
    });
    trial_.Begin(norms_, search.alpha, search.slope_at_zero);
    return TakeTrialStep(longer_alpha);
  }
  // Always true.
  bool TakeTrialStep(double alpha) {
    Advance(alpha);
    EvaluateAtV();
    const bool goes_on = norms_.finite && (control_.Converged() || trial_.GoesOn(norms_));
    return goes_on || TakeTrialBack();
  }
  // Goes on from where the line search led when the trial began. Always true.
  bool TakeTrialBack() {
    trial_.TakeBack();
    GoBack(workspace_.v_before_sweep);
    StartDualDirections();
    return true;
  }

  void StartDualDirections() {
    ForPoolsOf(view_, [&](auto pool) {
      const PoolRange range = view_.range(pool);
      auto& state = data_.pools[pool];
      view_.model.pools[pool].laws.StartDualDirections(range.begin, range.end, state.v_c,
                                                       state.gamma, &state.s);
    });
  }

  StepStatus ComputeStep() {
    if (accelerated_) {
      ForConstraints(view_, [&](auto pool, int begin, int end) {
        if (IsQuadratic(pool)) return;
        auto& state = data_.pools[pool];
        view_.model.pools[pool].laws.Hessians(begin, end, state.v_c, state.s, &state.G);
      });
    } else {
      EvaluateHessians(view_, &data_);
    }
    workspace_.hessian.Assemble(view_, data_, stop_within_);
    if (stop_within_.Requested()) return StepStatus::kStopped;
    StepStatus status = SolveStep();
    for (double shift = kLeastShift;
         status == StepStatus::kNotPositiveDefinite && shift <= kLargestShift; shift *= 100) {
      workspace_.hessian.RaiseDiagonal(view_, shift);
      status = SolveStep();
      factor_.Forget();
    }
    return status;
  }
  StepStatus SolveStep() {
    return SolveNewtonStep(view_, workspace_.hessian, stop_within_, data_, &factor_,
                           &workspace_.conjugate, &step_);
  }

  // Takes the Newton step.
  void Advance(double alpha) {
    if (accelerated_) {
      ForConstraints(view_, [&](auto pool, int begin, int end) {
        auto& state = data_.pools[pool];
        view_.model.pools[pool].laws.UpdateDualDirections(begin, end, state.v_c,
                                                          step_.pools[pool].v_c, &state.s);
      });
    }
    ForVelocities(view_, [&](int i) {
      workspace_.v_before[i] = data_.v[i];
      data_.v[i] += alpha * step_.v[i];
    });
  }

  // Evaluates for a sweep the constraints at the end of a step. An evaluation would compute J v and
  // the gradient as well, which the sweep makes stale.
  void AdvanceConstraints(double alpha) {
    ForConstraints(view_, [&](auto pool, int begin, int end) {
      auto& state = data_.pools[pool];
      const auto& v_c = step_.pools[pool].v_c;
      for (int i = begin; i < end; ++i) state.v_c.AddScaled(i, alpha, v_c);
      view_.model.pools[pool].laws.Impulses(begin, end, state.v_c, &state.gamma);
    });
  }

  // A sweep, in the other direction than the last one; false if it was stopped on its way.
  bool SweepOnce(SweptGroups groups) {
    ForVelocities(view_, [&](int i) { workspace_.v_before_sweep[i] = data_.v[i]; });
    const bool complete =
        Sweep(view_, sweep_order_, backward_, stop_within_, &data_, &step_, groups);
    backward_ = !backward_;
    if (sweep_order_.num_groups(view_.island) == 1) ++report_.factorizations;  // one group: one
    return complete;
  }

  void EvaluateAtV() {
    norms_ = EvaluateIterateOf(view_, options_, stop_within_, &data_, &workspace_.scratch);
  }

  // Evaluates at v. Goes back to where it was, and ends there, if that is outside the range of
  // doubles.
  bool EvaluateOrGoBack(const std::vector<double>& v_before) {
    EvaluateAtV();
    if (norms_.finite) return true;
    GoBack(v_before);
    return control_.End(SolveStatus::kNumericalFailure);
  }

  void GoBack(const std::vector<double>& v_before) {
    const IslandRange& range = view_.range();
    std::copy(v_before.begin() + range.velocity_begin, v_before.begin() + range.velocity_end,
              data_.v.begin() + range.velocity_begin);
    EvaluateAtV();
  }

  // How far a sweep got when it was stopped is not recorded: the iterate before is returned, so
  // that what a deadline has cut can be solved again to the same bits.
  bool EndBefore(const std::vector<double>& v_before) {
    --report_.iterations;
    if (stop_within_.Reason() != StopReason::kCancelled) GoBack(v_before);
    return control_.End(StatusOf(stop_within_.Reason()));
  }

  const View& view_;
  const SolverOptions& options_;
  const StopToken& stop_;
  const StopToken stop_within_;  // looked at within an iteration
  const SweepOrder& sweep_order_;
  const PlannedFactors& factorization_;
  SapWorkspace& workspace_;
  SapData& data_;
  SapStep& step_;
  const bool accelerated_;
  const bool has_curved_laws_;
  TrialControl trial_;
  bool backward_{false};
  NewtonControl control_;
  IslandNorms& norms_{control_.norms};
  IslandReport& report_{control_.report};
  HessianFactor factor_;
  std::unique_ptr<InteriorPointSolve> interior_;  // where it has been handed over
};

// Calls body(view) with the view of an island that knows most about it.
template <typename Body>
void WithView(const IslandView& view, Body&& body) {
  if (FewRowsView::Fits(view)) {
    body(FewRowsView(view));
  } else {
    body(view);
  }
}

}  // namespace

IslandNorms EvaluateIterate(const IslandView& view, const SolverOptions& options,
                            const StopToken& stop, SapData* data, SapScratch* scratch) {
  return EvaluateIterateOf(view, options, stop, data, scratch);
}

void ReportIterate(const IslandView& view, const SolverOptions& options, const IslandNorms& norms,
                   const StopToken& stop, SapData* data, SapScratch* scratch,
                   IslandReport* report) {
  const double gap_bound = CertifyIterate(view, options, norms, stop, data, scratch, report);
  ReportIterate(norms, gap_bound, view.constants().mass_unit, report);
  if (MeetsTolerance(norms, AbsoluteTolerance(view, options), options)) {
    report->status = SolveStatus::kConverged;
  }
}

void SapWorkspace::Resize(const ConstraintGraph& graph, bool coulomb) {
  data.Resize(graph);
  step.Resize(graph);
  scratch.Resize(graph);
  hessian.Resize(graph);
  conjugate.Resize(graph);
  v_before.resize(graph.velocity_start().back());
  v_before_sweep.resize(graph.velocity_start().back());
  if (!coulomb) return;
  v_best.resize(graph.velocity_start().back());
  v_round.resize(graph.velocity_start().back());
  krylov.Resize(graph);
}

void IterateIsland(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                   const SweepOrder& sweep_order, const PlannedFactors& factorization,
                   SapWorkspace* workspace, IslandReport* report) {
  WithView(view, [&](const auto& of_island) {
    *report = IslandSolve(of_island, options, stop, sweep_order, factorization, workspace)
                  .Continue(*report);
  });
}

void SolveIsland(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                 const SweepOrder& sweep_order, const PlannedFactors& factorization,
                 SapWorkspace* workspace, IslandReport* report) {
  WithView(view, [&](const auto& of_island) {
    *report = IslandSolve(of_island, options, stop, sweep_order, factorization, workspace).Run();
  });
}

}  // namespace sap
