// One solve of one problem: islands laid out, gathered, iterated and scattered as tasks; and its
// derivatives (derivative_run.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "solver/derivatives/island_derivatives.h"
#include "solver/newton/sap_solver.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/problem/constraint_graph.h"
#include "solver/run/deadline_reserve.h"
#include "solver/run/factor_stores.h"
#include "solver/run/island_plans.h"
#include "solver/run/island_schedule.h"
#include "solver/run/problem_pattern.h"
#include "solver/solve.h"

namespace sap {

// Sizes that the workspace has room for in every island of the graph, each more than the one
// before.
enum class WorkspaceRoom : uint8_t { kNone, kSolves, kRounds };

// State that a solver keeps between calls. Storage only grows.
struct SolverState {
  TaskArena* arena{nullptr};  // null: all on the calling thread
  // By the pattern of the last problem:
  ProblemPattern pattern;
  ConstraintGraph graph;
  SweepOrder sweep_order;
  IslandPlans plans;
  IslandSchedule schedule;
  // Workspace of a solve:
  std::vector<FactorPairBytes> factor_bytes;  // per task
  FactorStores factors;
  SapModel model;
  SapWorkspace workspace;
  WorkspaceRoom workspace_room{WorkspaceRoom::kNone};
  DeadlineReserve deadline_reserve;
  // Workspace of its derivatives:
  AdjointData adjoint;
  std::vector<SharedInputs> shared_inputs;  // by island, then by cotangent
  std::vector<double> tangent_costs;        // by island, then by direction

  size_t storage_bytes() const {
    return StorageBytes(pattern, graph, sweep_order, plans, schedule, factor_bytes, factors, model,
                        workspace, adjoint, shared_inputs, tangent_costs);
  }

  int num_threads() const { return arena != nullptr ? arena->num_threads() : 1; }
  // Where an island is worked on; null: by one thread.
  TaskArena* ArenaOf(int island) const { return schedule.IsLarge(island) ? arena : nullptr; }
  IslandView View(int island) const { return {graph, model, island, ArenaOf(island)}; }
  // Calls body(task) for the tasks of the schedule.
  template <typename Body>
  void ForTasks(Body&& body) {
    if (arena != nullptr) {
      arena->ParallelFor(schedule.num_tasks(), body);
    } else {
      for (int task = 0; task < schedule.num_tasks(); ++task) body(task);
    }
  }
  // Calls body(PlannedFactors) with a store for the factors of an island of a task, or without one
  // where there is no plan.
  template <typename Body>
  auto WithFactors(const EliminationPlan* plan, int task, Body&& body) {
    if (plan == nullptr) return body(PlannedFactors());
    const FactorStores::Lease store(&factors, task);
    return body(PlannedFactors{plan, store.factors()});
  }
};

class SolveRun {
 public:
  using Clock = std::chrono::steady_clock;

  SolveRun(const ContactProblem& problem, const SolverOptions& options, const StopToken& stop,
           SolverState* state, ContactSolution* solution)
      : problem_(problem), options_(options), stop_(stop), state_(*state), solution_(*solution) {}

  // Lays out the islands and reserves memory. Derivatives need factors of islands that are solved
  // by sweeps, too, and all of the model.
  tl::expected<void, MemoryLimitExceeded> Prepare(bool differentiates);
  // Solves every island. Requires Prepare.
  void SolveIslands();
  // Differentiates every island. Requires SolveIslands, and Prepare for derivatives.
  void DifferentiateIslands(const DerivativeRequest& request, Derivatives* derivatives);

 private:
  void LayOut();
  void Resize();
  void ResizeWorkspace();
  tl::expected<void, MemoryLimitExceeded> ReserveFactors();
  void SolveTask(int task);
  int EndOfSingleBodies(int position, int end) const;
  void SolveSingleBodiesAt(int begin, int end, Clock::time_point start);
  void SolveIslandAt(int position, int task, Clock::time_point start);
  void SolveOne(int island, const PlannedFactors& factors, const StopToken& stop);
  void SolveRounds(int island, const PlannedFactors& factors, const StopToken& stop);
  bool ReadsModelOfSingleBodies() const;
  void StartReport(int island);
  void GatherModel(int island);
  void GatherIsland(int island);
  void GatherVelocities(int island);
  void ScatterIsland(int island);
  StopToken StopOfIterations(int begin, int end, Clock::time_point start);
  Clock::duration TimeAfterIterations(int position) const;
  void DifferentiateIslandAt(int position, int task, const DerivativeRequest& request,
                             Derivatives* derivatives);
  void SumCosts();

  static double SecondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  const IslandRange& RangeAt(int position) const {
    return state_.graph.island_ranges()[state_.schedule.island(position)];
  }
  // The plan that an island is factored by; null: dense, or swept.
  const EliminationPlan* PlanOf(int island) const {
    return options_.newton != NewtonMethod::kGaussSeidel ? state_.plans.plan(island) : nullptr;
  }

  const ContactProblem& problem_;
  const SolverOptions& options_;
  const StopToken& stop_;
  SolverState& state_;
  ContactSolution& solution_;
  bool differentiates_{false};
};

}  // namespace sap
