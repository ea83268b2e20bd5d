#include "solver/derivative_run.h"

#include "solver/derivative_scatter.h"
#include "solver/solution_scatter.h"

namespace sap {

namespace {

// Sums of derivatives by island and cotangent that are kept for the next call: 2.5 MiB.
constexpr size_t kMostKeptSums = size_t{1} << 16;

}  // namespace

void DerivativeRun::DifferentiateIslands() {
  const SolveRun::Clock::time_point start = SolveRun::Clock::now();
  if (!stop_.Cancelled()) state_.adjoint.Resize(state_.graph, !request_.directions.empty());
  PrepareDerivatives(problem_, state_.graph, request_, &derivatives_);
  const int islands = state_.graph.islands().count();
  std::vector<SharedInputs>& shared_inputs = state_.shared_inputs;
  shared_inputs.assign(islands * request_.cotangents.size(), {});
  state_.tangent_costs.assign(islands * request_.directions.size(), 0.0);
  const IslandSchedule& schedule = state_.schedule;
  state_.ForTasks([&](int task) {
    for (int i = schedule.task_begin(task); i < schedule.task_end(task); ++i) {
      DifferentiateIslandOf(task, schedule.island(i));
    }
  });
  SumCosts(&solution_);
  SumOverIslands(islands, shared_inputs, state_.tangent_costs, &derivatives_);
  if (shared_inputs.size() > kMostKeptSums) std::vector<SharedInputs>().swap(shared_inputs);
  solution_.times.solve_s += SecondsSince(start);
}

void DerivativeRun::DifferentiateIslandOf(int task, int island) {
  const IslandView view = state_.View(island);
  const DerivativeScope scope{
      problem_, view, stop_, state_.workspace.data, &state_.adjoint, request_.hold_delassus};
  const size_t cotangents = request_.cotangents.size();
  const size_t directions = request_.directions.size();
  IslandDerivatives of_island{
      .gradients = derivatives_.gradients,
      .shared = std::span(state_.shared_inputs).subspan(island * cotangents, cotangents),
      .tangents = derivatives_.tangents,
      .costs = std::span(state_.tangent_costs).subspan(island * directions, directions),
      .kink_margin = &derivatives_.kink_margin[island],
      .report = &solution_.islands[island]};
  IslandReport& report = solution_.islands[island];
  const IslandReport of_solve = report;
  const SolveRun::Clock::time_point start = SolveRun::Clock::now();
  derivatives_.adjoint_status[island] =
      state_.WithFactors(state_.plans.plan(island), task, [&](const PlannedFactors& factors) {
        return DifferentiateIsland(scope, options_, request_, factors, &state_.workspace,
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
