#include "solver/newton/newton_step.h"

#include <algorithm>

#include "solver/cholesky/dense_cholesky.h"

namespace sap {

namespace {

// Factorizations above this are done in single precision, as preconditioners: below, the two
// products with H that it takes cost what is saved [flop].
constexpr double kPreconditionedFlops = 2e6;

// A Newton step is good to far less than a residual of 1e-4.
constexpr ConjugateGoal kStepGoal{.max_products = 8, .residual = 1e-4};

}  // namespace

bool IsPreconditioned(const EliminationPlan* plan, const SolverOptions& options) {
  return options.newton == NewtonMethod::kAccelerated && plan != nullptr &&
         plan->mean_flops() >= kPreconditionedFlops;
}

StepStatus HessianFactor::Factor(const Hessian& hessian) {
  const auto& [plan, factors] = factorization_;
  ++factorizations_;
  if (plan == nullptr) {
    AssembleDense(view_, hessian, &dense_);
    return dense_.Factor() ? StepStatus::kOk : StepStatus::kNotPositiveDefinite;
  }
  if (single_precision_) {
    const StepStatus status = FactorSparse(view_, hessian, *plan, stop_, &factors->preconditioner);
    if (status != StepStatus::kNotPositiveDefinite) return status;
    single_precision_ = false;
    ++factorizations_;
  }
  return FactorSparse(view_, hessian, *plan, stop_, &factors->exact);
}

bool HessianFactor::Solve(const std::vector<double>& r, std::vector<double>* z) const {
  const int begin = view_.range().velocity_begin;
  const size_t n = view_.range().num_velocities();
  const auto& [plan, factors] = factorization_;
  if (plan == nullptr) {
    if (&r != z) std::copy_n(r.begin() + begin, n, z->begin() + begin);
    SolveDense(view_, dense_, z->data() + begin);
    return true;
  }
  const std::span<const double> from{r.data() + begin, n};
  const std::span<double> to{z->data() + begin, n};
  if (!single_precision_) return factors->exact.Solve(*plan, from, to, stop_, view_.arena);
  return factors->preconditioner.Solve(*plan, from, to, stop_, view_.arena);
}

StepStatus HessianFactor::FactorAndSolve(const Hessian& hessian, SixDofs n, double* x) {
  ++factorizations_;
  double H[6 * 6];
  std::copy_n(hessian.diagonal_block(view_.graph, view_.range().slot_begin), 6 * 6, H);
  if (!FactorDense(H, n)) return StepStatus::kNotPositiveDefinite;
  SolveDense(H, n, x);
  return StepStatus::kOk;
}

void HessianFactor::Forget() {
  if (factorization_.factors != nullptr) factorization_.factors->Forget();
}

StepStatus SolveNewtonStep(const IslandView& view, const Hessian& hessian, const StopToken& stop,
                           const SapData& data, HessianFactor* factor, ConjugateVectors* vectors,
                           SapStep* step) {
  const IslandRange& range = view.range();
  const auto negate_gradient = [&](std::vector<double>* to) {
    for (int i = range.velocity_begin; i < range.velocity_end; ++i) (*to)[i] = -data.gradient[i];
  };
  if (range.num_trees() == 1 && range.num_velocities() == SixDofs()) {
    negate_gradient(&step->v);
    return factor->FactorAndSolve(hessian, SixDofs(), step->v.data() + range.velocity_begin);
  }
  const auto precondition = [&](const std::vector<double>& r, std::vector<double>* z) {
    return factor->Solve(r, z);
  };
  const auto multiply = [&](const std::vector<double>& p, std::vector<double>* product) {
    hessian.Multiply(view, p, stop, product);
    return !stop.Requested();
  };
  for (;;) {
    const StepStatus factored = factor->Factor(hessian);
    if (factored != StepStatus::kOk) return factored;
    if (!factor->single_precision()) {
      negate_gradient(&step->v);
      return factor->Solve(step->v, &step->v) ? StepStatus::kOk : StepStatus::kStopped;
    }
    negate_gradient(&vectors->residual);
    const StepStatus solved =
        SolveByConjugateGradients(view, kStepGoal, precondition, multiply, vectors, &step->v);
    if (solved != StepStatus::kNotPositiveDefinite) return solved;
    factor->UseDoublePrecision();
  }
}

}  // namespace sap
