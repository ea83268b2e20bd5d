#include "solver/newton/sap_solver.h"

#include <algorithm>

#include "solver/newton/accuracy_certificate.h"
#include "solver/newton/line_search.h"
#include "solver/newton/newton_control.h"

namespace sap {

namespace {

// What is reported of the velocity that `data` was evaluated at.
void ReportNorms(const IslandView& view, const IslandNorms& norms, const SapData& data,
                 const StopToken& stop, SapScratch* scratch, IslandReport* report) {
  const double unit = view.constants().mass_unit;
  report->momentum_residual = RelativeGradient(norms);
  report->cost = norms.cost * unit;
  report->optimality_gap_bound = OptimalityGapBound(view, data, stop, scratch) * unit;
}

// The Newton loop with what it carries from step to step.
class IslandSolve {
 public:
  IslandSolve(const IslandView& view, const SolverOptions& options, const StopToken& stop,
              const SweepOrder& sweep_order, const PlannedFactors& factorization,
              SapWorkspace* workspace, IslandReport* report)
      : view_(view),
        options_(options),
        stop_(stop),
        sweep_order_(sweep_order),
        factorization_(factorization),
        workspace_(*workspace),
        data_(workspace->data),
        step_(workspace->step),
        accelerated_(options.newton == NewtonMethod::kAccelerated),
        preconditioned_(factorization.plan != nullptr &&
                        IsPreconditioned(*factorization.plan, options)),
        absolute_tolerance_(AbsoluteTolerance(view, options)),
        report_(*report) {}

  void Run() {
    norms_ = Evaluate(view_, &data_, &workspace_.scratch, stop_);
    if (!norms_.finite || !view_.constants().representable) {
      return Report(SolveStatus::kNumericalFailure);
    }
    const bool factorable =
        factorization_.plan != nullptr || view_.range().num_velocities() <= kDenseDofs;
    if (options_.newton == NewtonMethod::kGaussSeidel || !factorable) return RunSweeps();
    if (accelerated_) StartDualDirections();
    SweepGuard guard(view_, options_);
    StallDetector stall(norms_);
    while (!Converged()) {
      if (report_.iterations >= options_.max_iterations) {
        return Report(SolveStatus::kIterationLimit);
      }
      if (stop_.Requested()) return Report(StopStatus());
      const StepStatus step = ComputeStep();
      if (step == StepStatus::kStopped) return Report(StopStatus());
      if (step == StepStatus::kNotPositiveDefinite) return Report(SolveStatus::kNumericalFailure);
      const LineSearchResult search =
          SearchAlongStep(view_, accelerated_ ? kAcceleratedSearchTolerance : kPlainSearchTolerance,
                          stop_, data_, &step_, &workspace_.scratch);
      if (stop_.Requested()) return Report(StopStatus());
      ++report_.iterations;
      if (!search.descends || search.alpha == 0) return Report(SolveStatus::kStalledAtRoundoff);
      const bool sweep = guard.ShouldSweep(Residual(), search.alpha);
      Advance(search.alpha);
      // A step of length one may have arrived. Any other has met a kink on its way and has not.
      const bool evaluated = !sweep || search.alpha == 1;
      if (!evaluated) {
        AdvanceConstraints(search.alpha);
      } else if (!EvaluateOrGoBack(workspace_.v_before)) {
        return Report(SolveStatus::kNumericalFailure);
      }
      if (sweep && !(evaluated && Converged())) {
        if (!SweepOnce(SweptGroups::kKinked)) {
          return ReportIterationBefore(StopStatus(), workspace_.v_before);
        }
        if (!EvaluateOrGoBack(workspace_.v_before)) return Report(SolveStatus::kNumericalFailure);
      }
      if (!Converged() && stall.Stalled(norms_)) return Report(SolveStatus::kStalledAtRoundoff);
    }
    Report(SolveStatus::kConverged);
  }

 private:
  // Sweeps over all trees, each of which counts as an iteration. They converge slowly: that one
  // makes little progress does not mean that rounding errors allow no more.
  void RunSweeps() {
    report_.swept = true;
    while (!Converged()) {
      if (report_.iterations >= options_.max_iterations) {
        return Report(SolveStatus::kIterationLimit);
      }
      if (stop_.Requested()) return Report(StopStatus());
      ++report_.iterations;
      if (!SweepOnce(SweptGroups::kAll)) {
        return ReportIterationBefore(StopStatus(), workspace_.v_before_sweep);
      }
      if (!EvaluateOrGoBack(workspace_.v_before_sweep))
        return Report(SolveStatus::kNumericalFailure);
    }
    Report(SolveStatus::kConverged);
  }

  double Residual() const { return RelativeGradient(norms_); }
  bool Converged() const { return MeetsTolerance(norms_, absolute_tolerance_, options_); }

  SolveStatus StopStatus() const {
    return stop_.Reason() == StopReason::kCancelled ? SolveStatus::kCancelled
                                                    : SolveStatus::kDeadline;
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
    ForConstraints(view_, [&](auto pool, int begin, int end) {
      if (IsQuadratic(pool)) return;
      auto& state = data_.pools[pool];
      const auto& laws = view_.model.pools[pool].laws;
      if (accelerated_) {
        laws.Hessians(begin, end, state.v_c, state.s, &state.G);
      } else {
        laws.Hessians(begin, end, state.v_c, &state.G);
      }
    });
    const Hessian& hessian = workspace_.hessian;
    workspace_.hessian.Assemble(view_, data_, stop_);
    if (stop_.Requested()) return StepStatus::kStopped;
    ++report_.factorizations;
    const EliminationPlan* plan = factorization_.plan;
    if (plan == nullptr) return SolveDenseStep(view_, hessian, data_, &step_);
    if (preconditioned_) {
      const StepStatus status = SolvePreconditionedStep(view_, hessian, *plan, stop_, data_,
                                                        &factorization_.factors->preconditioner,
                                                        &workspace_.conjugate, &step_);
      if (status != StepStatus::kNotPositiveDefinite) return status;
      preconditioned_ = false;  // what single precision could not do once it will not do better
      ++report_.factorizations;
    }
    return SolveSparseStep(view_, hessian, *plan, stop_, data_, &factorization_.factors->exact,
                           &step_);
  }

  // Takes the Newton step.
  void Advance(double alpha) {
    const IslandRange& range = view_.range();
    if (accelerated_) {
      ForConstraints(view_, [&](auto pool, int begin, int end) {
        auto& state = data_.pools[pool];
        view_.model.pools[pool].laws.UpdateDualDirections(begin, end, state.v_c,
                                                          step_.pools[pool].v_c, &state.s);
      });
    }
    for (int i = range.velocity_begin; i < range.velocity_end; ++i) {
      workspace_.v_before[i] = data_.v[i];
      data_.v[i] += alpha * step_.v[i];
    }
  }

  // What a sweep needs of the constraints at the end of a step. An evaluation would compute J v and
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
    const IslandRange& range = view_.range();
    std::copy(data_.v.begin() + range.velocity_begin, data_.v.begin() + range.velocity_end,
              workspace_.v_before_sweep.begin() + range.velocity_begin);
    const bool complete = Sweep(view_, sweep_order_, backward_, stop_, &data_, &step_, groups);
    backward_ = !backward_;
    if (sweep_order_.num_groups(view_.island) == 1) ++report_.factorizations;  // one group: one
    return complete;
  }

  // Evaluates at v; goes back to where it was, and says so, if that is outside the range of
  // doubles.
  bool EvaluateOrGoBack(const std::vector<double>& v_before) {
    norms_ = Evaluate(view_, &data_, &workspace_.scratch, stop_);
    if (norms_.finite) return true;
    GoBack(v_before);
    return false;
  }

  void GoBack(const std::vector<double>& v_before) {
    const IslandRange& range = view_.range();
    std::copy(v_before.begin() + range.velocity_begin, v_before.begin() + range.velocity_end,
              data_.v.begin() + range.velocity_begin);
    norms_ = Evaluate(view_, &data_, &workspace_.scratch, stop_);
  }

  // How far a sweep got when it was stopped is not recorded: the iterate before is returned, so
  // that what a deadline has cut can be solved again to the same bits.
  void ReportIterationBefore(SolveStatus status, const std::vector<double>& v_before) {
    --report_.iterations;
    if (status != SolveStatus::kCancelled) GoBack(v_before);
    Report(status);
  }

  void Report(SolveStatus status) {
    ReportNorms(view_, norms_, data_, stop_, &workspace_.scratch, &report_);
    // A cancellation cuts off anything that it meets, so that none of it means anything.
    report_.status = stop_.Cancelled() ? SolveStatus::kCancelled : status;
  }

  const IslandView& view_;
  const SolverOptions& options_;
  const StopToken& stop_;
  const SweepOrder& sweep_order_;
  const PlannedFactors& factorization_;
  SapWorkspace& workspace_;
  SapData& data_;
  SapStep& step_;
  const bool accelerated_;
  bool preconditioned_;
  const double absolute_tolerance_;
  bool backward_{false};
  IslandNorms norms_;
  IslandReport& report_;
};

}  // namespace

void ReportIterate(const IslandView& view, const SolverOptions& options, const IslandNorms& norms,
                   const SapData& data, const StopToken& stop, SapScratch* scratch,
                   IslandReport* report) {
  ReportNorms(view, norms, data, stop, scratch, report);
  if (MeetsTolerance(norms, AbsoluteTolerance(view, options), options)) {
    report->status = SolveStatus::kConverged;
  }
}

void SapWorkspace::Resize(const ConstraintGraph& graph) {
  data.Resize(graph);
  step.Resize(graph);
  scratch.Resize(graph);
  hessian.Resize(graph);
  conjugate.Resize(graph);
  v_before.resize(graph.velocity_start().back());
  v_before_sweep.resize(graph.velocity_start().back());
}

void SolveIsland(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                 const SweepOrder& sweep_order, const PlannedFactors& factorization,
                 SapWorkspace* workspace, IslandReport* report) {
  IslandSolve(view, options, stop, sweep_order, factorization, workspace, report).Run();
}

}  // namespace sap
