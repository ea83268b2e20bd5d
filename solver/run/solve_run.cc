#include "solver/run/solve_run.h"

#include <algorithm>
#include <array>
#include <limits>

#include "solver/newton/coulomb_rounds.h"
#include "solver/newton/interior_point.h"
#include "solver/newton/single_body_islands.h"
#include "solver/run/solution_scatter.h"

namespace sap {

namespace {

// Cubed dofs of trees per constraint above which the time to gather an island tells nothing about
// the time per constraint.
constexpr double kLargeTrees = 1e4;

}  // namespace

void SolveRun::SumCosts() {
  solution_.cost = 0;
  for (const IslandReport& report : solution_.islands) solution_.cost += report.cost;
}

tl::expected<void, MemoryLimitExceeded> SolveRun::Prepare(bool differentiates) {
  differentiates_ = differentiates;
  const Clock::time_point start = Clock::now();
  state_.deadline_reserve.Start(options_.coulomb.has_value());
  if (state_.pattern.Matches(problem_, options_.islands)) {
    Resize();
  } else {
    LayOut();
  }
  if (!stop_.Cancelled()) {  // else no island will use them
    if (const auto reserved = ReserveFactors(); !reserved) return reserved;
  }
  solution_.times.islands_s = SecondsSince(start);
  return {};
}

// The layout of the last problem is kept while the pattern holds: no sorting, ordering or analysis
// is done again. Where a plan is missing, because time was short or an exception came, the next
// problem is laid out again. The plans of large patterns are made while another thread takes hold
// of memory, of which new pages cost a fault each.
void SolveRun::LayOut() {
  constexpr int kWorthSharing = 200;  // trees, of which a plan takes 50 us or more
  state_.pattern.Forget();
  state_.workspace_room = WorkspaceRoom::kNone;
  state_.graph.Build(problem_, options_.islands);
  const auto plan = [this] {
    const auto reserve = state_.deadline_reserve.TimeForIslands(
        problem_.num_contacts() + problem_.num_rows(), state_.graph.islands().count(),
        state_.num_threads());
    state_.plans.Make(state_.graph, stop_.EarlierBy(reserve), state_.arena);
  };
  const auto resize = [this] {
    state_.sweep_order.Build(state_.graph);
    Resize();
  };
  if (state_.arena != nullptr && state_.graph.num_slots() >= kWorthSharing) {
    state_.arena->ParallelFor(2, [&](int i) { i == 0 ? plan() : resize(); });
  } else {
    plan();
    resize();
  }
  state_.schedule.Build(state_.graph, state_.plans);
  if (state_.plans.complete()) state_.pattern.Assign(problem_, options_.islands);
}

void SolveRun::Resize() {
  PrepareSolution(problem_, state_.graph, &solution_);
  if (stop_.Cancelled()) return;  // no island will use the rest
  state_.model.Resize(problem_, state_.graph, options_.coulomb.has_value());
  if (options_.rest) state_.model.ResizeRest(problem_, state_.graph);
  ResizeWorkspace();
}

// Some hundred arrays keep their sizes while the pattern holds. To look at each takes 5 % of the
// instructions of a robot's solve.
void SolveRun::ResizeWorkspace() {
  const auto needed = options_.coulomb ? WorkspaceRoom::kRounds : WorkspaceRoom::kSolves;
  if (state_.workspace_room >= needed) return;
  state_.workspace_room = WorkspaceRoom::kNone;
  state_.workspace.Resize(state_.graph, options_.coulomb.has_value());
  state_.workspace_room = needed;
}

// Compares what the factorizations need with the limit before any of it is allocated: the same for
// large islands whether one thread solves them or several.
tl::expected<void, MemoryLimitExceeded> SolveRun::ReserveFactors() {
  state_.factor_bytes.assign(state_.schedule.num_tasks(), {});
  for (int task = 0; task < state_.schedule.num_tasks(); ++task) {
    for (int i = state_.schedule.task_begin(task); i < state_.schedule.task_end(task); ++i) {
      const int island = state_.schedule.island(i);
      const EliminationPlan* plan = differentiates_ ? state_.plans.plan(island) : PlanOf(island);
      if (plan == nullptr) continue;
      const bool single = IsPreconditioned(plan, options_);
      state_.factor_bytes[task].RaiseTo(FactorPairBytes::Of(*plan, single, nullptr));
      if (i >= state_.schedule.num_large()) continue;
      state_.factor_bytes[task].RaiseTo(FactorPairBytes::Of(*plan, single, state_.arena));
    }
  }
  const size_t needed = state_.factors.Plan(state_.factor_bytes, state_.num_threads());
  if (needed > options_.max_factor_bytes) {
    return tl::unexpected(MemoryLimitExceeded{needed, options_.max_factor_bytes});
  }
  state_.factors.Reserve(options_.max_factor_bytes);
  return {};
}

void SolveRun::SolveIslands() {
  const Clock::time_point start = Clock::now();
  state_.ForTasks([this](int task) { SolveTask(task); });
  SumCosts();
  solution_.times.solve_s = SecondsSince(start);
}

void SolveRun::SolveTask(int task) {
  // One reading of the clock per island or vector of islands, since it takes longer than the sweep
  // of a small one.
  Clock::time_point start = Clock::now();
  for (int i = state_.schedule.task_begin(task); i < state_.schedule.task_end(task);) {
    int end = EndOfSingleBodies(i, state_.schedule.task_end(task));
    if (end > i) {
      SolveSingleBodiesAt(i, end, start);
    } else {
      end = i + 1;
      SolveIslandAt(i, task, start);
    }
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - start).count() / (end - i);
    for (; i < end; ++i) solution_.islands[state_.schedule.island(i)].solve_time_s = seconds;
    start = now;
  }
}

// The end of the islands from this position on that SolveSingleBodyIslands takes together, up to
// `end`; the position itself where it takes none.
int SolveRun::EndOfSingleBodies(int position, int end) const {
  int i = position;
  while (i < std::min(end, position + kMaxSingleBodyIslands) &&
         IsSingleBodyIsland(RangeAt(i), options_) &&
         RangeAt(i).num_contacts == RangeAt(position).num_contacts) {
    ++i;
  }
  return i;
}

// Whether the model has to have what their lanes have: for the rounds of exact friction, for
// derivatives, and for the rule that finds w by loads.
bool SolveRun::ReadsModelOfSingleBodies() const {
  return options_.coulomb || differentiates_ ||
         problem_.regularization().rule == DelassusRule::kLoadPath;
}

// `start` is when the first island began to be gathered.
void SolveRun::SolveSingleBodiesAt(int begin, int end, Clock::time_point start) {
  std::array<int, kMaxSingleBodyIslands> of_lanes;
  for (int i = begin; i < end; ++i) of_lanes[i - begin] = state_.schedule.island(i);
  const auto islands = std::span<const int>(of_lanes).first(end - begin);
  const bool into_model = ReadsModelOfSingleBodies();
  SingleBodies bodies;
  for (const int island : islands) {
    StartReport(island);
    if (into_model) GatherModel(island);
    GatherVelocities(island);
  }
  if (!stop_.Cancelled()) {
    state_.model.GatherSingleBodies(problem_, state_.graph, islands, into_model, &bodies);
    const StopToken stop = StopOfIterations(begin, end, start);
    const auto unsolved =
        SolveSingleBodyIslands(state_.graph, state_.model, bodies, islands, options_, stop,
                               &state_.workspace.data, solution_.islands);
    for (int i = begin; i < end; ++i) {
      const int island = islands[i - begin];
      if (unsolved[i - begin]) {
        if (!into_model) GatherModel(island);
        SolveOne(island, PlannedFactors(), stop);
      } else if (options_.coulomb) {
        SolveRounds(island, PlannedFactors(), stop);
      }
    }
  }
  for (int i = begin; i < end; ++i) ScatterIsland(state_.schedule.island(i));
}

// `start` is when the island began to be gathered.
void SolveRun::SolveIslandAt(int position, int task, Clock::time_point start) {
  const int island = state_.schedule.island(position);
  GatherIsland(island);
  if (!stop_.Cancelled()) {
    const StopToken stop = StopOfIterations(position, position + 1, start);
    state_.WithFactors(PlanOf(island), task,
                       [&](const PlannedFactors& factors) { SolveOne(island, factors, stop); });
  }
  ScatterIsland(island);
}

void SolveRun::SolveOne(int island, const PlannedFactors& factors, const StopToken& stop) {
  const IslandView view = state_.View(island);
  IslandReport* const report = &solution_.islands[island];
  if (options_.coulomb && HasCoulombFriction(view.range())) {
    // The certificate of the convex answer would go unread.
    SolverOptions first = options_;
    first.max_iterations =
        std::min(options_.max_iterations, IterationsBeforeExactHandOver(options_, view));
    IterateIsland(view, first, stop, state_.sweep_order, factors, &state_.workspace, report);
  } else {
    SolveIsland(view, options_, stop, state_.sweep_order, factors, &state_.workspace, report);
  }
  if (options_.coulomb) SolveRounds(island, factors, stop);
}

// From the convex answer of an island to exact Coulomb friction.
void SolveRun::SolveRounds(int island, const PlannedFactors& factors, const StopToken& stop) {
  const IslandView view = state_.View(island);
  IslandReport& report = solution_.islands[island];
  if (report.status == SolveStatus::kCancelled) return;
  if (HasCoulombFriction(view.range())) {
    SolveCoulombRounds(view, options_, stop, state_.sweep_order, factors, &state_.model,
                       &state_.workspace, &report);
  } else {
    report.coulomb_defect =
        CoulombDefect(view, stop, &state_.workspace.data, &state_.workspace.scratch);
  }
}

void SolveRun::StartReport(int island) {
  solution_.islands[island] = {.status = SolveStatus::kCancelled};
}

void SolveRun::GatherModel(int island) {
  if (stop_.Cancelled()) return;
  state_.model.Gather(problem_, state_.graph, island, stop_, state_.ArenaOf(island));
}

// Gathers the data of an island and its guess; starts with a blank report.
void SolveRun::GatherIsland(int island) {
  StartReport(island);
  GatherModel(island);
  GatherVelocities(island);
}

// The guess of an island, and its velocity at the beginning of the step where that is asked for.
void SolveRun::GatherVelocities(int island) {
  if (stop_.Cancelled()) return;
  GatherGuess(problem_, state_.graph, island, &state_.workspace.data.v);
  if (options_.rest) state_.model.GatherRest(problem_, state_.graph, island);
}

void SolveRun::ScatterIsland(int island) {
  const IslandView view{state_.graph, state_.model, island, nullptr};
  IslandReport& report = solution_.islands[island];
  if (report.status != SolveStatus::kCancelled) {
    ScatterIterate(problem_, view, state_.workspace.data, &solution_);
  } else {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    report = {.status = SolveStatus::kCancelled,
              .iterations = report.iterations,
              .factorizations = report.factorizations,
              .momentum_residual = kInfinity,
              .optimality_gap_bound = kInfinity,
              .rest_drift = options_.rest ? kInfinity : report.rest_drift};
    ScatterGuess(problem_, state_.graph, island, &solution_);
  }
  report.dofs = view.range().num_velocities();
  report.contacts = view.range().num_contacts;
  report.rows = view.range().num_rows;
}

// When the iterations of the islands at positions [begin, end) are to end.
StopToken SolveRun::StopOfIterations(int begin, int end, Clock::time_point start) {
  if (!stop_.HasDeadline()) return stop_;
  int constraints = 0;
  double cubed_dofs = 0;
  for (int i = begin; i < end; ++i) {
    const IslandRange& range = RangeAt(i);
    constraints += range.num_constraints();
    cubed_dofs += range.cubed_dofs;
  }
  // Large trees take longer to gather than their constraints tell.
  if (cubed_dofs < kLargeTrees * constraints) {
    state_.deadline_reserve.Gathered(constraints, Clock::now() - start);
  }
  return stop_.EarlierBy(TimeAfterIterations(begin));
}

// From the last iterate of the island at this position of the schedule to the end of the solve.
SolveRun::Clock::duration SolveRun::TimeAfterIterations(int position) const {
  const int constraints = RangeAt(position).num_constraints();
  return state_.deadline_reserve.TimeToReport(constraints) +
         state_.deadline_reserve.TimeToReportTrees(state_.schedule.cubed_dofs_from(position)) +
         state_.deadline_reserve.TimeForIslands(state_.schedule.constraints_after(position),
                                                state_.schedule.islands_after(position),
                                                state_.num_threads());
}

}  // namespace sap
