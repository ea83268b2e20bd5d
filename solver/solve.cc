#include "solver/solve.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "solver/cholesky/plan_cache.h"
#include "solver/deadline_reserve.h"
#include "solver/problem/contact_graph.h"
#include "solver/sap/sap_solver.h"

namespace sap {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Predicted work of a task, below which starting it costs more than it gains [flop].
constexpr double kTaskFlops = 5e4;
// Islands with factorizations above this are worth several threads [flop].
constexpr double kParallelIslandFlops = 1e6;

// Cubed dofs of trees per contact above which the time to gather an island tells nothing.
constexpr double kLargeTrees = 1e4;

// Work of one Newton iteration on the contacts of an island [flop].
constexpr double kFlopsPerContact = 1000;

// What the layout of a problem depends on, to tell whether the last one still holds.
struct Pattern {
  std::vector<int> dofs, tree_a, tree_b;
  bool split_islands{true};
  bool known{false};  // false: no problem was laid out yet, not even the empty one

  bool Matches(const ContactProblem& problem, bool split) const {
    return known && split == split_islands && std::ranges::equal(dofs, problem.dofs()) &&
           std::ranges::equal(tree_a, problem.tree_a()) &&
           std::ranges::equal(tree_b, problem.tree_b());
  }
  void Assign(const ContactProblem& problem, bool split) {
    dofs.assign(problem.dofs().begin(), problem.dofs().end());
    tree_a.assign(problem.tree_a().begin(), problem.tree_a().end());
    tree_b.assign(problem.tree_b().begin(), problem.tree_b().end());
    split_islands = split;
    known = true;
  }
};

}  // namespace

struct Solver::Impl {
  explicit Impl(TaskArena* task_arena) : arena(task_arena) {}

  int num_threads() const { return arena != nullptr ? arena->num_threads() : 1; }
  void Solve(const ContactProblem& problem, const SolverOptions& options, const StopToken& stop,
             ContactSolution* solution);
  void LayOut(const ContactProblem& problem, bool split_islands, const StopToken& stop);
  void PlanIslands(const StopToken& stop);
  const PlanCache::Plan* RequestPlan(const IslandRange& range);
  void ScheduleIslands();
  void SolveOneIsland(const ContactProblem& problem, const SolverOptions& options,
                      const StopToken& stop, int position, ContactSolution* solution);
  bool IterateOneIsland(const ContactProblem& problem, const SolverOptions& options,
                        const StopToken& stop, Clock::time_point start, int position,
                        IslandReport* report);
  Clock::duration TimeAfterIterations(int position) const;
  void ScatterGuess(const ContactProblem& problem, int island, ContactSolution* solution) const;
  void Scatter(const ContactProblem& problem, int island, ContactSolution* solution) const;

  TaskArena* arena;
  Pattern pattern;
  ContactGraph graph;
  SweepOrder sweep_order;
  PlanCache plans;
  SapModel model;
  SapWorkspace workspace;
  DeadlineReserve pace;
  std::vector<IslandFactorization> factorizations;      // per island
  std::vector<std::unique_ptr<IslandFactors>> factors;  // per island with a plan
  std::vector<double> flops;                            // per island and iteration
  std::vector<int> schedule;                            // islands, largest first
  std::vector<int> task_start;                          // into schedule
  std::vector<int64_t> contacts_after;                  // of those later in the schedule
  std::vector<double> cubed_dofs_from;                  // of this one and those
  std::vector<const PlanCache::Plan*> plan_of_island;   // scratch of PlanIslands
  std::vector<int> edge_a, edge_b;                      // scratch of RequestPlan
};

// The layout of the last problem is kept while the pattern holds: no sorting, ordering or analysis
// is done again.
void Solver::Impl::LayOut(const ContactProblem& problem, bool split_islands,
                          const StopToken& stop) {
  if (!pattern.Matches(problem, split_islands)) {
    pattern.Assign(problem, split_islands);
    graph.Build(problem, split_islands);
    sweep_order.Build(graph);
    PlanIslands(stop);
    ScheduleIslands();
  }
  if (stop.Cancelled()) return;  // no island will use them
  model.Resize(graph);
  workspace.Resize(graph);
}

// Stopped, it leaves islands without a plan: they will not be iterated on, and the pattern is laid
// out anew next time.
void Solver::Impl::PlanIslands(const StopToken& stop) {
  const int count = graph.islands().count();
  plans.BeginProblem();
  plan_of_island.assign(count, nullptr);
  for (int island = 0; island < count; ++island) {
    const IslandRange& range = graph.island_ranges()[island];
    if (range.num_velocities() > kDenseDofs) plan_of_island[island] = RequestPlan(range);
  }
  plans.MakePlans(stop.Before(pace.TimeForIslands(graph.num_contacts(), count, num_threads())),
                  arena);

  factorizations.assign(count, {});
  flops.resize(count);
  size_t planned = 0;
  for (int island = 0; island < count; ++island) {
    const IslandRange& range = graph.island_ranges()[island];
    const double n = range.num_velocities();
    flops[island] = kFlopsPerContact * range.num_contacts();
    if (plan_of_island[island] == nullptr) {
      flops[island] += n * n * n / 3;
      continue;
    }
    const PlanCache::Plan& plan = *plan_of_island[island];
    if (!plan) {
      pattern.known = false;
      continue;
    }
    if (planned == factors.size()) factors.push_back(std::make_unique<IslandFactors>());
    factorizations[island] = {&*plan, factors[planned++].get()};
    flops[island] += plan->factor_flops();
  }
}

const PlanCache::Plan* Solver::Impl::RequestPlan(const IslandRange& range) {
  edge_a.clear();
  edge_b.clear();
  for (int p = range.pair_begin; p < range.pair_end; ++p) {
    const ContactPair& pair = graph.pairs()[p];
    if (pair.high < 0) continue;
    edge_a.push_back(pair.low - range.slot_begin);
    edge_b.push_back(pair.high - range.slot_begin);
  }
  return plans.Request({graph.dofs().subspan(range.slot_begin, range.num_trees()), edge_a, edge_b});
}

// Largest first: an island that holds most of the work and is started late leaves the other threads
// idle. Small ones share a task.
void Solver::Impl::ScheduleIslands() {
  const int count = graph.islands().count();
  schedule.resize(count);
  for (int island = 0; island < count; ++island) schedule[island] = island;
  std::sort(schedule.begin(), schedule.end(),
            [&](int a, int b) { return flops[a] != flops[b] ? flops[a] > flops[b] : a < b; });
  task_start.assign(1, 0);
  double task_flops = 0;
  for (int i = 0; i < count; ++i) {
    task_flops += flops[schedule[i]];
    if (task_flops >= kTaskFlops || i + 1 == count) {
      task_start.push_back(i + 1);
      task_flops = 0;
    }
  }
  contacts_after.resize(count);
  int64_t contacts = 0;
  double cubed_dofs = 0;
  cubed_dofs_from.resize(count);
  for (int i = count - 1; i >= 0; --i) {
    const IslandRange& range = graph.island_ranges()[schedule[i]];
    contacts_after[i] = contacts;
    contacts += range.num_contacts();
    cubed_dofs_from[i] = cubed_dofs += range.cubed_dofs;
  }
}

void Solver::Impl::Solve(const ContactProblem& problem, const SolverOptions& options,
                         const StopToken& stop, ContactSolution* solution) {
  const Clock::time_point start = Clock::now();
  pace.Start();
  LayOut(problem, options.islands, stop);
  const std::span<const int> island_of_tree = graph.islands().island_of_tree();
  solution->island_of_tree.assign(island_of_tree.begin(), island_of_tree.end());
  solution->velocity.assign(problem.v_star().begin(), problem.v_star().end());
  solution->impulse.resize(3 * static_cast<size_t>(problem.num_contacts()));
  solution->contact_velocity.resize(solution->impulse.size());
  solution->islands.resize(graph.islands().count());
  solution->times.islands_s = SecondsSince(start);

  const Clock::time_point solve_start = Clock::now();
  const int tasks = static_cast<int>(task_start.size()) - 1;
  const auto task = [&](int t) {
    for (int i = task_start[t]; i < task_start[t + 1]; ++i) {
      SolveOneIsland(problem, options, stop, i, solution);
    }
  };
  if (arena != nullptr) {
    arena->ParallelFor(tasks, task);
  } else {
    for (int t = 0; t < tasks; ++t) task(t);
  }
  solution->cost = 0;
  for (const IslandReport& report : solution->islands) solution->cost += report.cost;
  solution->times.solve_s = SecondsSince(solve_start);
}

void Solver::Impl::SolveOneIsland(const ContactProblem& problem, const SolverOptions& options,
                                  const StopToken& stop, int position, ContactSolution* solution) {
  const Clock::time_point start = Clock::now();
  const int island = schedule[position];
  IslandReport& report = solution->islands[island];
  if (IterateOneIsland(problem, options, stop, start, position, &report)) {
    Scatter(problem, island, solution);
  } else {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    report = {.status = SolveStatus::kCancelled,
              .iterations = report.iterations,
              .factorizations = report.factorizations,
              .momentum_residual = kInfinity,
              .optimality_gap_bound = kInfinity};
    ScatterGuess(problem, island, solution);
  }
  report.dofs = graph.island_ranges()[island].num_velocities();
  report.contacts = graph.island_ranges()[island].num_contacts();
  report.solve_time_s = SecondsSince(start);
}

// `start` is when the island's turn came. False if it was cancelled.
bool Solver::Impl::IterateOneIsland(const ContactProblem& problem, const SolverOptions& options,
                                    const StopToken& stop, Clock::time_point start, int position,
                                    IslandReport* report) {
  *report = {};
  if (stop.Cancelled()) return false;
  const int island = schedule[position];
  TaskArena* const inner_arena = flops[island] >= kParallelIslandFlops ? arena : nullptr;
  const IslandView view{graph, model, island, inner_arena};
  const IslandRange& range = view.range();
  model.Gather(problem, graph, island, stop, inner_arena);
  if (stop.Cancelled()) return false;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = graph.islands().tree_of_slot()[slot];
    const auto guess =
        problem.v_guess().subspan(problem.velocity_start()[tree], graph.dofs()[slot]);
    std::copy(guess.begin(), guess.end(), workspace.data.v.begin() + graph.velocity_start()[slot]);
  }
  StopToken island_stop = stop;
  if (factorizations[island].plan == nullptr && range.num_velocities() > kDenseDofs) {
    island_stop = stop.Passed();
  } else if (stop.HasDeadline()) {
    // Large trees take longer to gather than their contacts tell.
    if (range.cubed_dofs < kLargeTrees * range.num_contacts()) {
      pace.Gathered(range.num_contacts(), Clock::now() - start);
    }
    island_stop = stop.Before(TimeAfterIterations(position));
  }
  *report =
      SolveIsland(view, options, island_stop, sweep_order, factorizations[island], &workspace);
  return report->status != SolveStatus::kCancelled;
}

// From the last iterate of the island at this position of the schedule to the end of the solve.
Clock::duration Solver::Impl::TimeAfterIterations(int position) const {
  const int contacts = graph.island_ranges()[schedule[position]].num_contacts();
  const int islands_after = graph.islands().count() - 1 - position;
  return pace.TimeToReport(contacts) + pace.TimeToReportTrees(cubed_dofs_from[position]) +
         pace.TimeForIslands(contacts_after[position], islands_after, num_threads());
}

void Solver::Impl::ScatterGuess(const ContactProblem& problem, int island,
                                ContactSolution* solution) const {
  const IslandRange& range = graph.island_ranges()[island];
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = graph.islands().tree_of_slot()[slot];
    const int64_t start = problem.velocity_start()[tree];
    const auto guess = problem.v_guess().subspan(start, graph.dofs()[slot]);
    std::copy(guess.begin(), guess.end(), solution->velocity.begin() + start);
  }
  for (int i = range.contact_begin; i < range.contact_end; ++i) {
    const int64_t to = 3 * static_cast<int64_t>(graph.contact_order()[i]);
    std::fill_n(solution->impulse.begin() + to, 3, 0.0);
    std::fill_n(solution->contact_velocity.begin() + to, 3, 0.0);
  }
}

void Solver::Impl::Scatter(const ContactProblem& problem, int island,
                           ContactSolution* solution) const {
  const SapData& data = workspace.data;
  const IslandRange& range = graph.island_ranges()[island];
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int tree = graph.islands().tree_of_slot()[slot];
    const auto v = data.v.begin() + graph.velocity_start()[slot];
    std::copy(v, v + graph.dofs()[slot],
              solution->velocity.begin() + problem.velocity_start()[tree]);
  }
  const double unit = model.constants(island).mass_unit;
  for (int i = range.contact_begin; i < range.contact_end; ++i) {
    const int64_t to = 3 * static_cast<int64_t>(graph.contact_order()[i]);
    const double* b = problem.surface_velocity().data() + to;
    solution->impulse[to] = data.gamma.x[i] * unit;
    solution->impulse[to + 1] = data.gamma.y[i] * unit;
    solution->impulse[to + 2] = data.gamma.n[i] * unit;
    solution->contact_velocity[to] = data.v_c.x[i] + b[0];
    solution->contact_velocity[to + 1] = data.v_c.y[i] + b[1];
    solution->contact_velocity[to + 2] = data.v_c.n[i] + b[2];
  }
}

Solver::Solver(TaskArena* arena) : impl_(std::make_unique<Impl>(arena)) {}
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

void Solver::UseArena(TaskArena* arena) { impl_->arena = arena; }

void Solver::Solve(const ContactProblem& problem, const SolverOptions& options,
                   const StopToken& stop, ContactSolution* solution) {
  impl_->Solve(problem, options, stop, solution);
}

ContactSolution Solve(const ContactProblem& problem, const SolverOptions& options) {
  ContactSolution solution;
  Solver(nullptr).Solve(problem, options, StopToken(), &solution);
  return solution;
}

double PredictedSolveTime(const ContactProblem& problem) {
  // Fitted to warm sequences of piles of 40 to 2000 bodies and of hundreds of heaps of three.
  constexpr double kPerContact = 0.8e-6;
  constexpr double kPerFill = 1e-7;
  constexpr double kFreeOfFill = 4;  // sqrt of the dofs of an island that is solved as one block
  constexpr double kPerFlop = 1e-9;
  thread_local Islands islands;
  islands.Find(problem, true);
  double time = kPerContact * problem.num_contacts();
  for (int island = 0; island < islands.count(); ++island) {
    double n = 0;
    for (int slot = islands.first_slot()[island]; slot < islands.first_slot()[island + 1]; ++slot) {
      const double dofs = problem.dofs()[islands.tree_of_slot()[slot]];
      n += dofs;
      time += kPerFlop * dofs * dofs * dofs;
    }
    time += kPerFill * n * std::max(0.0, std::sqrt(n) - kFreeOfFill);
  }
  return time;
}

}  // namespace sap
