// The derivatives of a solve: each island differentiated as a task, and the sums over islands.
#include <algorithm>

#include "solver/run/derivative_scatter.h"
#include "solver/run/solution_scatter.h"
#include "solver/run/solve_run.h"

namespace sap {

namespace {

// Sums of derivatives by island and cotangent that are kept for the next call: 2.5 MiB.
constexpr size_t kMostKeptSums = size_t{1} << 16;

}  // namespace

void SolveRun::DifferentiateIslands(const DerivativeRequest& request, Derivatives* derivatives) {
  const Clock::time_point start = Clock::now();
  PrepareDerivatives(problem_, state_.graph, request, derivatives);
  if (options_.coulomb) {
    std::ranges::fill(derivatives->adjoint_status, AdjointStatus::kNumericalFailure);
    return;
  }
  if (!stop_.Cancelled()) state_.adjoint.Resize(state_.graph, !request.directions.empty());
  const int islands = state_.graph.islands().count();
  std::vector<SharedInputs>& shared_inputs = state_.shared_inputs;
  shared_inputs.assign(islands * request.cotangents.size(), {});
  state_.tangent_costs.assign(islands * request.directions.size(), 0.0);
  state_.ForTasks([&](int task) {
    for (int i = state_.schedule.task_begin(task); i < state_.schedule.task_end(task); ++i) {
      DifferentiateIslandAt(i, task, request, derivatives);
    }
  });
  SumCosts();
  SumOverIslands(islands, shared_inputs, state_.tangent_costs, derivatives);
  if (shared_inputs.size() > kMostKeptSums) std::vector<SharedInputs>().swap(shared_inputs);
  solution_.times.solve_s += SecondsSince(start);
}

void SolveRun::DifferentiateIslandAt(int position, int task, const DerivativeRequest& request,
                                     Derivatives* derivatives) {
  const int island = state_.schedule.island(position);
  const IslandView view = state_.View(island);
  const DerivativeScope scope{
      problem_, view, stop_, state_.workspace.data, &state_.adjoint, request.hold_delassus};
  const size_t cotangents = request.cotangents.size();
  const size_t directions = request.directions.size();
  IslandDerivatives of_island{
      .gradients = derivatives->gradients,
      .shared = std::span(state_.shared_inputs).subspan(island * cotangents, cotangents),
      .tangents = derivatives->tangents,
      .costs = std::span(state_.tangent_costs).subspan(island * directions, directions),
      .kink_margin = &derivatives->kink_margin[island],
      .report = &solution_.islands[island]};
  IslandReport& report = solution_.islands[island];
  const IslandReport of_solve = report;
  const Clock::time_point start = Clock::now();
  derivatives->adjoint_status[island] =
      state_.WithFactors(state_.plans.plan(island), task, [&](const PlannedFactors& factors) {
        return DifferentiateIsland(scope, options_, request, factors, &state_.workspace,
                                   &of_island);
      });
  if (stop_.Cancelled() || of_solve.status == SolveStatus::kCancelled) {
    report = of_solve;  // what was cut off means nothing
  } else {
    ScatterIterate(problem_, view, state_.workspace.data, &solution_);
    report.solve_time_s += SecondsSince(start);
  }
}

}  // namespace sap
