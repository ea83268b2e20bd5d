#include "solver/newton/interior_system.h"

namespace sap {

namespace {

// Where masses are many orders apart, as in sap_solver.cc.
constexpr double kLeastRaise = 1e-15;
constexpr double kLargestRaise = 1e-4;

}  // namespace

InteriorSystem::InteriorSystem(const IslandView& of_view, const SolverOptions& of_options,
                               const StopToken& of_stop, HessianFactor* of_factor,
                               SapWorkspace* of_workspace)
    : view(of_view),
      options(of_options),
      stop(of_stop),
      factor(*of_factor),
      workspace(*of_workspace),
      data(workspace.data),
      step(workspace.step),
      scratch(workspace.scratch),
      vectors(workspace.conjugate) {
  ForInequalities(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    most_chunks = std::max(most_chunks, kConstraints.Count(range.begin, range.end));
    interior.states[pool].Resize(range);
    interior.best[pool].Resize(range);
    interior.best_velocities[pool].Resize(range);
    const auto& laws = view.model.pools[pool].laws;
    for (int i = range.begin; i < range.end; ++i) {
      auto& state = StateAt(pool, i);
      if constexpr (kIsRow<std::remove_cvref_t<decltype(state)>>) {
        state.row.p = laws.parameters(i);
      } else {
        state.cone.p = ConeOf(laws, i);
        exact_friction = laws.InRounds(i);
      }
    }
  });
}

void InteriorSystem::SetResidual() {
  SetMomentumResidual(
      view, stop, &data, [&](auto pool) -> const auto& {
        if constexpr (HasInequalities(pool)) {
          return scratch.pools[pool].impulse_errors;
        } else {
          return data.pools[pool].gamma;
        }
      });
}

bool InteriorSystem::Factor() {
  ++*iterations;
  workspace.hessian.Assemble(view, data, stop);
  if (stop.Requested()) return false;
  StepStatus status = factor.Factor(workspace.hessian);
  for (double shift = kLeastRaise;
       status == StepStatus::kNotPositiveDefinite && shift <= kLargestRaise; shift *= 100) {
    workspace.hessian.RaiseDiagonal(view, shift);
    status = factor.Factor(workspace.hessian);
    factor.Forget();
  }
  return status == StepStatus::kOk;
}

}  // namespace sap
