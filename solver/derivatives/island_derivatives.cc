#include "solver/derivatives/island_derivatives.h"

#include <algorithm>
#include <cmath>

#include "solver/derivatives/delassus_slopes.h"
#include "solver/derivatives/hessian_system.h"
#include "solver/derivatives/island_gradient.h"
#include "solver/derivatives/island_numbers.h"
#include "solver/derivatives/island_tangent.h"

namespace sap {

namespace {

bool IsZero(const DerivativeScope& scope, const Cotangent& cotangent) {
  if (cotangent.cost != 0) return false;
  bool is_zero = true;
  ForOutputsOf(scope.problem, scope.view, cotangent,
               [&](const double& value) { is_zero &= value == 0; });
  return is_zero;
}

class IslandDifferentiation {
 public:
  IslandDifferentiation(const DerivativeScope& scope, const SolverOptions& options,
                        const DerivativeRequest& request, HessianSystem* system,
                        SapWorkspace* workspace, IslandDerivatives* derivatives)
      : scope_(scope),
        view_(scope.view),
        options_(options),
        request_(request),
        system_(*system),
        workspace_(*workspace),
        report_(*derivatives->report),
        derivatives_(*derivatives) {}

  AdjointStatus Run() {
    const StepStatus polished = Polish();
    if (polished == StepStatus::kStopped) return AdjointStatus::kDeadline;
    if (polished != StepStatus::kOk) return AdjointStatus::kNumericalFailure;
    *derivatives_.kink_margin = SetDelassusSlopes(scope_, !scope_.hold_delassus);
    bool accurate = report_.status == SolveStatus::kConverged;
    const AdjointStatus status = Differentiate(&accurate);
    if (status != AdjointStatus::kDifferentiated) Clear();
    if (status != AdjointStatus::kDifferentiated || accurate) return status;
    return AdjointStatus::kInaccurate;
  }

 private:
  AdjointStatus Differentiate(bool* accurate) {
    for (size_t k = 0; k < request_.cotangents.size(); ++k) {
      const Cotangent& cotangent = request_.cotangents[k];
      if (IsZero(scope_, cotangent)) continue;
      const StepStatus status = AddGradient(scope_, cotangent, &system_, &derivatives_.shared[k],
                                            &derivatives_.gradients[k]);
      if (status == StepStatus::kStopped) return AdjointStatus::kDeadline;
      *accurate &= status == StepStatus::kOk;
    }
    for (size_t k = 0; k < request_.directions.size(); ++k) {
      const StepStatus status = AddTangent(scope_, request_.directions[k], &system_,
                                           &derivatives_.costs[k], &derivatives_.tangents[k]);
      if (status == StepStatus::kStopped) return AdjointStatus::kDeadline;
      *accurate &= status == StepStatus::kOk;
    }
    return IsFinite() ? AdjointStatus::kDifferentiated : AdjointStatus::kNumericalFailure;
  }

  // v += dv, H dv = -grad l, where that does not increase the gradient.
  StepStatus Polish() {
    SapData& data = workspace_.data;
    AdjointData& adjoint = *scope_.adjoint;
    const int begin = view_.range().velocity_begin;
    const int end = view_.range().velocity_end;
    EvaluateHessians(view_, &data);
    KeepHessians();
    const StepStatus factored = system_.Factor();
    if (factored != StepStatus::kOk) return factored;
    const double before = ScaledNorm(data.gradient);
    if (!system_.Precondition(data.gradient, &adjoint.lambda)) return StepStatus::kStopped;
    for (int i = begin; i < end; ++i) {
      adjoint.v_before[i] = data.v[i];
      data.v[i] -= adjoint.lambda[i];
    }
    IslandNorms norms = EvaluateIterate(view_, options_, scope_.stop, &data, &workspace_.scratch);
    if (!norms.finite || !(norms.gradient <= before)) {
      std::copy(adjoint.v_before.begin() + begin, adjoint.v_before.begin() + end,
                data.v.begin() + begin);
      norms = EvaluateIterate(view_, options_, scope_.stop, &data, &workspace_.scratch);
    } else {
      EvaluateHessians(view_, &data);
      if (HessiansMoved()) system_.Moved();
    }
    ReportIterate(view_, options_, norms, scope_.stop, &data, &workspace_.scratch, &report_);
    if (scope_.stop.Requested()) return StepStatus::kStopped;
    return norms.finite ? StepStatus::kOk : StepStatus::kNotPositiveDefinite;
  }

  // G of all constraints, kept where W_bar will be.
  void KeepHessians() {
    ForConstraints(view_, [&](auto pool, int begin, int end) {
      if constexpr (!IsQuadratic(pool)) {
        for (int i = begin; i < end; ++i) {
          scope_.adjoint->pools[pool].W_bar.values[i] =
              ToLawMatrix(scope_.data.pools[pool].G.At(i));
        }
      }
    });
  }
  // Whether any G differs from what was kept by more than a share of 1e-6.
  bool HessiansMoved() const {
    constexpr double kShare2 = 1e-12;
    bool moved = false;
    ForPoolsOf(view_, [&](auto pool) {
      if constexpr (!IsQuadratic(pool)) {
        for (int i = view_.range(pool).begin; i < view_.range(pool).end; ++i) {
          const auto& before = scope_.adjoint->pools[pool].W_bar.At(i).entries;
          const auto now = ToLawMatrix(scope_.data.pools[pool].G.At(i)).entries;
          double difference2 = 0, size2 = 0;
          for (size_t k = 0; k < now.size(); ++k) {
            difference2 += (now[k] - before[k]) * (now[k] - before[k]);
            size2 += before[k] * before[k];
          }
          moved |= !(difference2 <= kShare2 * size2);
        }
      }
    });
    return moved;
  }

  // |D x|, D = diag(A)^-1/2.
  double ScaledNorm(const std::vector<double>& x) const {
    double sum = 0;
    for (int i = view_.range().velocity_begin; i < view_.range().velocity_end; ++i) {
      const double scaled = view_.model.D()[i] * x[i];
      sum += scaled * scaled;
    }
    return std::sqrt(sum);
  }

  // Calls body(double&) for every number of the island in the answer.
  template <typename Body>
  void ForDerivatives(Body&& body) {
    for (Gradient& gradient : derivatives_.gradients) {
      ForGradientOf(scope_.problem, view_, &gradient, body);
    }
    for (SharedInputs& shared : derivatives_.shared) {
      for (double* value : shared.all()) body(*value);
    }
    for (Tangent& tangent : derivatives_.tangents) {
      ForOutputsOf(scope_.problem, view_, tangent, body);
    }
    for (double& cost : derivatives_.costs) body(cost);
  }
  bool IsFinite() {
    bool is_finite = true;
    ForDerivatives([&](const double& value) { is_finite &= std::isfinite(value); });
    return is_finite;
  }
  void Clear() {
    ForDerivatives([](double& value) { value = 0; });
  }

  const DerivativeScope& scope_;
  const IslandView& view_;
  const SolverOptions& options_;
  const DerivativeRequest& request_;
  HessianSystem& system_;
  SapWorkspace& workspace_;
  IslandReport& report_;
  IslandDerivatives& derivatives_;
};

}  // namespace

AdjointStatus DifferentiateIsland(const DerivativeScope& scope, const SolverOptions& options,
                                  const DerivativeRequest& request,
                                  const PlannedFactors& factorization, SapWorkspace* workspace,
                                  IslandDerivatives* derivatives) {
  const SolveStatus solved = derivatives->report->status;
  *derivatives->kink_margin = 0;
  if (scope.stop.Requested() || solved == SolveStatus::kCancelled) return AdjointStatus::kDeadline;
  if (solved == SolveStatus::kNumericalFailure) return AdjointStatus::kNumericalFailure;
  const bool is_wanted = !request.directions.empty() ||
                         std::ranges::any_of(request.cotangents, [&](const Cotangent& cotangent) {
                           return !IsZero(scope, cotangent);
                         });
  if (!is_wanted) {
    *derivatives->kink_margin = SetDelassusSlopes(scope, false);
    return solved == SolveStatus::kConverged ? AdjointStatus::kDifferentiated
                                             : AdjointStatus::kInaccurate;
  }
  if (factorization.plan == nullptr && !IsDense(scope.view.graph, scope.view.range())) {
    return AdjointStatus::kDeadline;  // there was no time to plan a factorization
  }
  HessianSystem hessian(scope.view, factorization, IsPreconditioned(factorization.plan, options),
                        scope.stop, workspace->data, workspace, scope.adjoint,
                        &derivatives->report->factorizations);
  return IslandDifferentiation(scope, options, request, &hessian, workspace, derivatives).Run();
}

}  // namespace sap
