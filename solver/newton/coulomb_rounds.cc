#include "solver/newton/coulomb_rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/newton/accuracy_certificate.h"
#include "solver/newton/hub_loops.h"
#include "solver/newton/interior_point.h"
#include "solver/newton/newton_control.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// Lagged rounds before shifted ones.
constexpr int kLaggedRounds = 25;
// Rounds without a Newton step after one that failed: 1, 2, 4, ... up to this.
constexpr int kMostPlainRounds = 16;
// Residual of a Newton step by GMRES, relative to F.
constexpr double kStepResidual = 1e-2;
// A round that leaves more than this part of the least |F|_{A^-1} before it makes no progress.
constexpr double kProgress = 0.5;
// Tolerance of the convex solve of a round, as a share of the residual of the round before, and
// between its least share of the tolerance of the island and a largest value.
constexpr double kRoundShare = 0.1;
constexpr double kLeastToleranceShare = 0.3;
constexpr double kLargestTolerance = 1e-2;

// Calls body(pool, begin, end) as ForConstraints does, with the cones alone.
template <typename Body>
void ForCones(const IslandView& view, Body&& body) {
  ForConstraints(view, [&](auto pool, int begin, int end) {
    if constexpr (IsCone(pool)) body(pool, begin, end);
  });
}

// The value with which a law meets the impulse of the convex law `round` at v_c.
template <typename Round, size_t rows>
double ValueAt(CoulombLaw law, const Round& round, const std::array<double, rows>& v_c) {
  using Cone = CoulombCone<static_cast<int>(rows)>;
  const auto point = Cone::At(round, v_c);
  return law == CoulombLaw::kLagged ? Cone::NextBound(point) : Cone::NextShift(round, point);
}

class CoulombRounds {
 public:
  CoulombRounds(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                const SweepOrder& sweep_order, const PlannedFactors& factorization, SapModel* model,
                SapWorkspace* workspace, IslandReport* report)
      : view_(view),
        options_(options),
        stop_(stop),
        sweep_order_(sweep_order),
        factorization_(factorization),
        model_(*model),
        workspace_(*workspace),
        data_(workspace->data),
        step_(workspace->step),
        report_(*report),
        absolute_tolerance_(AbsoluteTolerance(view, options)),
        hand_over_after_(IterationsBeforeExactHandOver(options, view)),
        takes_steps_(options.newton != NewtonMethod::kGaussSeidel &&
                     (factorization.plan != nullptr || IsDense(view.graph, view.range()))) {
    options_.relative_tolerance = options.coulomb->tolerance.value_or(options.relative_tolerance);
  }

  void Run() {
    const SolveStatus convex = report_.status;
    StartFromConvexAnswer();
    Evaluate();
    KeepBest();
    const bool is_cut = convex == SolveStatus::kIterationLimit && IsHandOverDue();
    if (!is_cut && convex != SolveStatus::kConverged && convex != SolveStatus::kStalledAtRoundoff) {
      return Report(convex);
    }
    while (!Converged()) {
      if (ended_at_roundoff_) return Report(SolveStatus::kStalledAtRoundoff);
      if (report_.coulomb_rounds >= static_cast<int>(options_.coulomb->max_rounds)) {
        return Report(SolveStatus::kCoulombLimit);
      }
      if (report_.iterations >= options_.max_iterations) {
        return Report(SolveStatus::kIterationLimit);
      }
      if (stop_.Requested()) return Report(StopStatus());
      if (IsHandOverDue()) {
        HandOver();
      } else if (!TakeRound()) {
        return Report(StopStatus());
      }
    }
    Report(SolveStatus::kConverged);
  }

 private:
  bool Converged() const { return MeetsTolerance(norms_, absolute_tolerance_, options_); }
  SolveStatus StopStatus() const { return StatusOf(stop_.Reason()); }

  // Calls body(parameters of the law, v_c) for the cones of the island.
  template <typename Body>
  void ForRounds(Body&& body) {
    ForCones(view_, [&](auto pool, int begin, int end) {
      auto& laws = model_.pools[pool].laws;
      for (int i = begin; i < end; ++i) {
        body(laws.round(i), ToLawVector(data_.pools[pool].v_c.At(i)));
      }
    });
  }
  void SetLaw(CoulombLaw law) {
    ForRounds([&](auto& round, const auto&) { round.law = law; });
  }

  // The normal impulses of the convex answer are the bounds of the first round.
  void StartFromConvexAnswer() {
    ForCones(view_, [&](auto pool, int begin, int end) {
      for (int i = begin; i < end; ++i) model_.pools[pool].laws.StartRounds(i);
    });
    KeepNext(CoulombLaw::kLagged);
    SetLaw(CoulombLaw::kExact);
  }
  // Defect of a next round without a step, by the answer of a round under the law that is set.
  void KeepNext(CoulombLaw law) {
    ForRounds([&](auto& round, const auto& v_c) { round.next = ValueAt(law, round, v_c); });
    next_law_ = law;
  }

  // F and its norms at v, where the exact law is set.
  void Evaluate() {
    norms_ = EvaluateIterate(view_, options_, stop_, &data_, &workspace_.scratch);
    const double residual = NormOfGradient(view_, stop_, &data_);
    residual_ = norms_.finite && std::isfinite(residual) ? residual : kUnknown;
  }
  void KeepBest() {
    best_residual_ = residual_;
    Copy(data_.v, &workspace_.v_best);
  }
  void GoBackTo(const std::vector<double>& v) {
    Copy(v, &data_.v);
    Evaluate();
  }
  void Copy(const std::vector<double>& from, std::vector<double>* to) const {
    std::copy(from.begin() + view_.range().velocity_begin,
              from.begin() + view_.range().velocity_end,
              to->begin() + view_.range().velocity_begin);
  }

  bool IsHandOverDue() const {
    return !handed_over_ && report_.iterations >= hand_over_after_ &&
           report_.iterations < options_.max_iterations;
  }
  // The exact law by the interior-point method. Rounds go on from the better of where it ends and
  // where it was begun.
  void HandOver() {
    handed_over_ = true;
    HessianFactor factor(view_, factorization_, IsPreconditioned(factorization_.plan, options_),
                         stop_, &report_.factorizations);
    InteriorPointSolve(view_, options_, stop_, &factor, &workspace_)
        .Run(&report_.iterations, &norms_);
    if (stop_.Cancelled()) return;
    Evaluate();
    if (residual_ < best_residual_) {
      KeepBest();
    } else {
      GoBackTo(workspace_.v_best);
    }
    KeepNext(CoulombLaw::kLagged);
  }

  // False if it was stopped on its way. Every round counts as one iteration at least, so that an
  // answer that a deadline cut off is that of a limit on iterations.
  bool TakeRound() {
    const CoulombLaw law =
        report_.coulomb_rounds < kLaggedRounds ? CoulombLaw::kLagged : CoulombLaw::kShifted;
    bool stepped = false;
    if (takes_steps_ && plain_rounds_left_ == 0) {
      const StepStatus step = ComputeStep();
      if (step == StepStatus::kStopped) return false;
      stepped = step == StepStatus::kOk;
    }
    const double residual = residual_;
    const double tolerance = RoundTolerance();
    Copy(data_.v, &workspace_.v_round);
    const int iterations = report_.iterations;
    if (stepped) {
      ++report_.iterations;
      Predict(law);
    } else {
      if (next_law_ != law) KeepNext(law);
      ForRounds([&](auto& round, const auto&) { round.value = round.next; });
    }
    SetLaw(law);
    SolverOptions of_round = options_;
    of_round.relative_tolerance = tolerance;
    if (!handed_over_)
      of_round.max_iterations = std::min(of_round.max_iterations, hand_over_after_);
    IterateIsland(view_, of_round, stop_, sweep_order_, factorization_, &workspace_, &report_);
    SetLaw(CoulombLaw::kExact);
    Evaluate();
    if (report_.iterations == iterations) {
      if (stop_.Requested()) return false;
      ++report_.iterations;
    }
    ++report_.coulomb_rounds;
    const bool progress = residual_ < kProgress * best_residual_;
    if (residual_ < best_residual_) KeepBest();
    if (!norms_.finite || (stepped && !(residual_ < residual))) {
      GoBackTo(workspace_.v_round);
      plain_rounds_left_ = plain_rounds_;
      plain_rounds_ = std::min(2 * plain_rounds_, kMostPlainRounds);
      ended_at_roundoff_ = IsRoundoff(Defect());
      return true;
    }
    if (!progress) ended_at_roundoff_ = IsRoundoff(Defect());
    if (plain_rounds_left_ > 0) --plain_rounds_left_;
    SetLaw(law);
    KeepNext(law);
    SetLaw(CoulombLaw::kExact);
    return true;
  }

  double RoundTolerance() const {
    return std::clamp(
        kRoundShare * RelativeGradient(norms_),
        std::min(kLeastToleranceShare * options_.relative_tolerance, kLargestTolerance),
        kLargestTolerance);
  }

  // Moves v by the step, and sets the values of the round by the exact law there.
  void Predict(CoulombLaw law) {
    ConstraintVelocities(view_, step_.v, stop_, &step_.pools);
    ForCones(view_, [&](auto pool, int begin, int end) {
      auto& laws = model_.pools[pool].laws;
      for (int i = begin; i < end; ++i) {
        auto v_c = ToLawVector(data_.pools[pool].v_c.At(i));
        const auto dv_c = ToLawVector(step_.pools[pool].v_c.At(i));
        for (size_t row = 0; row < v_c.size(); ++row) v_c[row] += dv_c[row];
        laws.round(i).value = ValueAt(law, laws.round(i), v_c);
      }
    });
    for (int i = view_.range().velocity_begin; i < view_.range().velocity_end; ++i) {
      data_.v[i] += step_.v[i];
    }
  }

  // The Newton step on the exact law, into step->v.
  StepStatus ComputeStep() {
    EvaluateHessians(view_, &data_);
    workspace_.hessian.Assemble(view_, data_, stop_);
    if (stop_.Requested()) return StepStatus::kStopped;
    HessianFactor factor(view_, factorization_, IsPreconditioned(factorization_.plan, options_),
                         stop_, &report_.factorizations);
    const StepStatus factored = factor.Factor(workspace_.hessian);
    if (factored != StepStatus::kOk) return factored;
    std::vector<double>& b = workspace_.conjugate.residual;
    for (int i = view_.range().velocity_begin; i < view_.range().velocity_end; ++i) {
      b[i] = -data_.gradient[i];
    }
    const auto precondition = [&](const std::vector<double>& r, std::vector<double>* z) {
      return factor.Solve(r, z);
    };
    const auto multiply = [&](const std::vector<double>& x, std::vector<double>* product) {
      Multiply(x, product);
      return !stop_.Requested();
    };
    return SolveByGmres(view_, kStepResidual, b, precondition, multiply, &workspace_.krylov,
                        &step_.v);
  }

  // y := H_x x: the assembled symmetric part, and J' of G_tn times the normal velocity of J x.
  void Multiply(const std::vector<double>& x, std::vector<double>* y) {
    workspace_.hessian.Multiply(view_, x, stop_, y);
    ConstraintVelocities(view_, x, stop_, &step_.pools);
    ForCones(view_, [&](auto pool, int begin, int end) {
      const auto& laws = view_.model.pools[pool].laws;
      using Cone = typename std::remove_cvref_t<decltype(laws)>::Law;
      auto& dv_c = step_.pools[pool].v_c;
      for (int i = begin; i < end; ++i) {
        const auto& round = laws.round(i);
        const auto point = Cone::At(round, ToLawVector(data_.pools[pool].v_c.At(i)));
        auto impulse = Cone::Coupling(round, point);
        const double dv_n = ToLawVector(dv_c.At(i))[Cone::kNormal];
        for (double& entry : impulse) entry *= dv_n;
        dv_c.Set(i, impulse);
      }
    });
    ForChunks(view_.arena, view_.range().slot_begin, view_.range().slot_end, kEvaluateSlots,
              [&](int begin, int end, int) {
                for (int slot = begin; slot < end; ++slot) AddConeImpulses(slot, y);
              });
  }

  // y += J' of what step.pools holds, for the cones of one tree.
  void AddConeImpulses(int slot, std::vector<double>* y) const {
    double* of_tree = y->data() + view_.graph.velocity_start()[slot];
    ForSize(view_.graph.dofs()[slot], [&](auto n) {
      ForPoolsOf(view_, [&](auto pool) {
        if constexpr (IsCone(pool)) {
          AddTreeImpulse(view_.arena, view_.model.pools[pool].jacobians, view_.layout(pool), slot,
                         n, step_.pools[pool].v_c, of_tree);
        }
      });
    });
  }

  // The defect of the velocities at which F was evaluated last.
  double Defect() { return CoulombDefect(view_, stop_, &data_, &workspace_.scratch); }

  // Whether rounding errors explain all of F at velocities with this defect, so that no round can
  // do better.
  bool IsRoundoff(double defect) const {
    return 2 * residual_ * std::sqrt(view_.constants().mass_unit) <= defect &&
           std::isfinite(defect);
  }

  void Report(SolveStatus status) {
    if (!Converged() && !(residual_ <= best_residual_)) GoBackTo(workspace_.v_best);
    report_.status = Converged() ? SolveStatus::kConverged : status;
    ReportIterate(norms_, kUnknown, view_.constants().mass_unit, &report_);
    if (options_.rest) report_.rest_drift = kUnknown;  // steps of the exact law are no contraction
    report_.coulomb_defect = Defect();
    const bool is_limit = report_.status == SolveStatus::kCoulombLimit ||
                          report_.status == SolveStatus::kIterationLimit;
    if (is_limit && IsRoundoff(report_.coulomb_defect)) {
      report_.status = SolveStatus::kStalledAtRoundoff;
    }
    // A cancellation cuts off anything that it meets, so that none of it means anything.
    if (stop_.Cancelled()) report_.status = SolveStatus::kCancelled;
  }

  const IslandView& view_;
  SolverOptions options_;
  const StopToken& stop_;
  const SweepOrder& sweep_order_;
  const PlannedFactors& factorization_;
  SapModel& model_;
  SapWorkspace& workspace_;
  SapData& data_;
  SapStep& step_;
  IslandReport& report_;
  const double absolute_tolerance_;
  const int hand_over_after_;
  const bool takes_steps_;
  IslandNorms norms_;
  bool handed_over_{false};
  bool ended_at_roundoff_{false};
  double residual_{kUnknown}, best_residual_{kUnknown};  // |F|_{A^-1}
  CoulombLaw next_law_{CoulombLaw::kLagged};             // that the next values are of
  int plain_rounds_left_{1};  // the first round has the bounds of the convex answer
  int plain_rounds_{1};       // after the next step that fails
};

}  // namespace

bool HasCoulombFriction(const IslandRange& range) {
  bool has = false;
  ForEachPool([&](auto pool) { has |= IsCone(pool) && range.has(pool.kind()); });
  return has;
}

double CoulombDefect(const IslandView& view, const StopToken& stop, SapData* data,
                     SapScratch* scratch) {
  // No cost bounds F.
  const double bound = OptimalityGapBound(view, kUnknown, stop, data, scratch);
  return std::sqrt(2 * bound * view.constants().mass_unit);
}

void SolveCoulombRounds(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                        const SweepOrder& sweep_order, const PlannedFactors& factorization,
                        SapModel* model, SapWorkspace* workspace, IslandReport* report) {
  CoulombRounds(view, options, stop, sweep_order, factorization, model, workspace, report).Run();
}

}  // namespace sap
