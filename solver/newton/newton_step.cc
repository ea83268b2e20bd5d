#include "solver/newton/newton_step.h"

#include <algorithm>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

// Factorizations above this are done in single precision, as preconditioners: below, the two
// products with H that it takes cost what is saved [flop].
constexpr double kPreconditionedFlops = 2e6;

// A Newton step is good to far less than a residual of 1e-4.
constexpr ConjugateGoal kStepGoal{.max_products = 8, .residual = 1e-4};

}  // namespace

bool IsPreconditioned(const EliminationPlan& plan, const SolverOptions& options) {
  return options.newton == NewtonMethod::kAccelerated && plan.mean_flops() >= kPreconditionedFlops;
}

StepStatus SolveDenseStep(const IslandView& view, const Hessian& hessian, const SapData& data,
                          SapStep* step) {
  const IslandRange& range = view.range();
  const int n = range.num_velocities();
  double* dv = step->v.data() + range.velocity_begin;
  const double* gradient = data.gradient.data() + range.velocity_begin;
  for (int i = 0; i < n; ++i) dv[i] = -gradient[i];
  if (range.num_trees() == 1 && n == 6) {
    constexpr SixDofs kSize;
    double H[6 * 6];
    std::copy_n(hessian.diagonal_block(view.graph, range.slot_begin), 6 * 6, H);
    if (!FactorDense(H, kSize)) return StepStatus::kNotPositiveDefinite;
    SolveDense(H, kSize, dv);
    return StepStatus::kOk;
  }
  SmallCholesky H;
  AssembleDense(view, hessian, &H);
  if (!H.Factor()) return StepStatus::kNotPositiveDefinite;
  SolveDense(view, H, dv);
  return StepStatus::kOk;
}

StepStatus SolveSparseStep(const IslandView& view, const Hessian& hessian,
                           const EliminationPlan& plan, const StopToken& stop, const SapData& data,
                           BlockCholesky<double>* cholesky, SapStep* step) {
  const StepStatus factored = FactorSparse(view, hessian, plan, stop, cholesky);
  if (factored != StepStatus::kOk) return factored;
  const IslandRange& range = view.range();
  const size_t n = range.num_velocities();
  double* dv = step->v.data() + range.velocity_begin;
  const double* gradient = data.gradient.data() + range.velocity_begin;
  for (size_t i = 0; i < n; ++i) dv[i] = -gradient[i];
  const bool solved = cholesky->Solve(plan, {dv, n}, {dv, n}, stop, view.arena);
  return solved ? StepStatus::kOk : StepStatus::kStopped;
}

StepStatus SolvePreconditionedStep(const IslandView& view, const Hessian& hessian,
                                   const EliminationPlan& plan, const StopToken& stop,
                                   const SapData& data, BlockCholesky<float>* cholesky,
                                   ConjugateVectors* vectors, SapStep* step) {
  const StepStatus factored = FactorSparse(view, hessian, plan, stop, cholesky);
  if (factored != StepStatus::kOk) return factored;
  const int begin = view.range().velocity_begin;
  const size_t n = view.range().num_velocities();
  for (int i = begin; i < view.range().velocity_end; ++i) {
    vectors->residual[i] = -data.gradient[i];
  }
  const auto precondition = [&](const std::vector<double>& r, std::vector<double>* z) {
    return cholesky->Solve(plan, {r.data() + begin, n}, {z->data() + begin, n}, stop, view.arena);
  };
  const auto multiply = [&](const std::vector<double>& p, std::vector<double>* product) {
    hessian.Multiply(view, p, stop, product);
    return !stop.Requested();
  };
  return SolveByConjugateGradients(view, kStepGoal, precondition, multiply, vectors, &step->v);
}

}  // namespace sap
