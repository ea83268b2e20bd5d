#include "solver/derivatives/hessian_system.h"

#include <algorithm>
#include <cmath>

#include "solver/cholesky/power_of_two.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

constexpr ConjugateGoal kGoal{.max_products = 25, .error2 = 1e-28};

}  // namespace

StepStatus HessianSystem::Factor() {
  workspace_.hessian.Assemble(view_, data_, stop_);
  if (stop_.Requested()) return StepStatus::kStopped;
  is_current_ = true;
  return factor_.Factor(workspace_.hessian);
}

StepStatus HessianSystem::Solve(const std::vector<double>& b, std::vector<double>* x) {
  const IslandRange& range = view_.range();
  const double largest = Largest(b);
  if (largest == 0) {
    std::fill(x->begin() + range.velocity_begin, x->begin() + range.velocity_end, 0.0);
    return StepStatus::kOk;
  }
  if (!std::isfinite(largest)) return StepStatus::kNotPositiveDefinite;
  const double scale = 1 / PowerOfTwoBelow(largest);
  for (;;) {
    const StepStatus status = Iterate(scale, b, x);
    if (status != StepStatus::kNotPositiveDefinite) return status;
    if (is_current_ && !factor_.single_precision()) return status;
    if (is_current_) factor_.UseDoublePrecision();
    const StepStatus factored = Factor();
    if (factored != StepStatus::kOk) return factored;
  }
}

StepStatus HessianSystem::SolveForLambda() {
  AddImpulses(view_, adjoint_, stop_, &adjoint_.right_side);
  if (stop_.Requested()) return StepStatus::kStopped;
  const StepStatus status = Solve(adjoint_.right_side, &adjoint_.lambda);
  if (status != StepStatus::kStopped) {
    MultiplyJacobians(view_, adjoint_.lambda, stop_, &adjoint_);
  }
  return status;
}

StepStatus HessianSystem::Iterate(double scale, const std::vector<double>& b,
                                  std::vector<double>* x) {
  ForVelocities(view_, [&](int i) { workspace_.conjugate.residual[i] = scale * b[i]; });
  const auto precondition = [this](const std::vector<double>& r, std::vector<double>* z) {
    return factor_.Solve(r, z);
  };
  const auto multiply = [this](const std::vector<double>& p, std::vector<double>* product) {
    Multiply(p, product);
    return !stop_.Requested();
  };
  ConjugateGoal goal = kGoal;
  goal.corrects = is_current_;
  const StepStatus status =
      SolveByConjugateGradients(view_, goal, precondition, multiply, &workspace_.conjugate, x);
  ForVelocities(view_, [&](int i) { (*x)[i] /= scale; });
  return status;
}

// product := A x + J' G J x, without the blocks of H, which would have to be assembled.
void HessianSystem::Multiply(const std::vector<double>& x, std::vector<double>* product) {
  const ConstraintGraph& graph = view_.graph;
  MultiplyJacobians(view_, x, stop_, &adjoint_);
  ForConstraints(view_, [&](auto pool, int begin, int end) {
    auto& v_c = adjoint_.pools[pool].v_c;
    for (int i = begin; i < end; ++i) v_c.Set(i, MultiplyG(view_, data_, pool, i, v_c.At(i)));
  });
  ForChunks(view_.arena, view_.range().slot_begin, view_.range().slot_end, kMomentumSlots,
            [&](int begin, int end, int) {
              for (int slot = begin; slot < end; ++slot) {
                const int start = graph.velocity_start()[slot];
                ForSize(graph.dofs()[slot], [&](auto n) {
                  MultiplySymmetric(view_.model.A(graph, slot), n, x.data() + start,
                                    product->data() + start);
                });
                if (view_.range().coupled) {
                  AddCoupledProduct(view_, slot, x, product->data() + start);
                }
              }
            });
  AddImpulses(view_, adjoint_, stop_, product);
}

double HessianSystem::Largest(const std::vector<double>& a) const {
  double largest = 0;
  for (int i = view_.range().velocity_begin; i < view_.range().velocity_end; ++i) {
    if (!(std::abs(a[i]) <= largest)) largest = std::abs(a[i]);  // keeps what is not a number
    if (std::isnan(largest)) break;
  }
  return largest;
}

}  // namespace sap
