#include "solver/solve.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "solver/deadline_reserve.h"
#include "solver/derivative_scatter.h"
#include "solver/derivatives/island_derivatives.h"
#include "solver/factor_stores.h"
#include "solver/island_plans.h"
#include "solver/island_schedule.h"
#include "solver/newton/sap_solver.h"
#include "solver/newton/single_body_islands.h"
#include "solver/problem/constraint_graph.h"
#include "solver/solution_scatter.h"

namespace sap {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Islands with more work than this per iteration are worth several threads [flop].
constexpr double kParallelIslandFlops = 1e6;

// Cubed dofs of trees per constraint above which the time to gather an island tells nothing about
// the time per constraint.
constexpr double kLargeTrees = 1e4;

// Sums of derivatives by island and cotangent that are kept for the next call: 2.5 MiB.
constexpr size_t kMostKeptSums = size_t{1} << 16;

// What the layout of a problem depends on, to tell whether the last one still holds.
struct Pattern {
  std::vector<int> dofs, tree_a, tree_b;
  std::vector<ConstraintKind> contact_kind, row_kind;
  std::vector<int64_t> row_start;
  std::vector<RowEntry> row_entries;
  bool split_islands{true};
  bool known{false};  // false: no problem was laid out yet, not even the empty one

  bool Matches(const ContactProblem& problem, bool split) const {
    return known && split == split_islands && std::ranges::equal(dofs, problem.dofs()) &&
           std::ranges::equal(tree_a, problem.tree_a()) &&
           std::ranges::equal(tree_b, problem.tree_b()) &&
           std::ranges::equal(contact_kind, problem.contact_kind()) &&
           std::ranges::equal(row_kind, problem.row_kind()) &&
           std::ranges::equal(row_start, problem.row_start()) &&
           std::ranges::equal(row_entries, problem.row_entries());
  }
  void Assign(const ContactProblem& problem, bool split) {
    dofs.assign(problem.dofs().begin(), problem.dofs().end());
    tree_a.assign(problem.tree_a().begin(), problem.tree_a().end());
    tree_b.assign(problem.tree_b().begin(), problem.tree_b().end());
    contact_kind.assign(problem.contact_kind().begin(), problem.contact_kind().end());
    row_kind.assign(problem.row_kind().begin(), problem.row_kind().end());
    row_start.assign(problem.row_start().begin(), problem.row_start().end());
    row_entries.assign(problem.row_entries().begin(), problem.row_entries().end());
    split_islands = split;
    known = true;
  }
};

void SumCosts(ContactSolution* solution) {
  solution->cost = 0;
  for (const IslandReport& report : solution->islands) solution->cost += report.cost;
}

}  // namespace

struct Solver::Impl {
  explicit Impl(TaskArena* task_arena) : arena(task_arena) {}

  tl::expected<void, MemoryLimitExceeded> Solve(const ContactProblem& problem,
                                                const SolverOptions& options, const StopToken& stop,
                                                ContactSolution* solution);
  tl::expected<void, MemoryLimitExceeded> Differentiate(
      const ContactProblem& problem, const SolverOptions& options, const DerivativeRequest& request,
      const StopToken& stop, ContactSolution* solution, Derivatives* derivatives);
  tl::expected<void, MemoryLimitExceeded> Prepare(const ContactProblem& problem,
                                                  const SolverOptions& options, bool factors_all,
                                                  const StopToken& stop, ContactSolution* solution);
  void SolveTasks(const ContactProblem& problem, const SolverOptions& options,
                  const StopToken& stop, ContactSolution* solution);
  void LayOut(const ContactProblem& problem, bool split_islands, const StopToken& stop);
  tl::expected<void, MemoryLimitExceeded> ReserveFactors(const SolverOptions& options,
                                                         bool factors_all);
  void SolveTask(const ContactProblem& problem, const SolverOptions& options, const StopToken& stop,
                 int task, ContactSolution* solution);
  void DifferentiateIslandAt(int island, int task, const ContactProblem& problem,
                             const SolverOptions& options, const DerivativeRequest& request,
                             const StopToken& stop, ContactSolution* solution,
                             Derivatives* derivatives);
  // The end of the islands from this position on that SolveSingleBodyIslands takes together, up to
  // `end`; the position itself where it takes none.
  int EndOfSingleBodies(int position, int end, const SolverOptions& options) const;
  void SolveSingleBodiesAt(int begin, int end, const ContactProblem& problem,
                           const SolverOptions& options, const StopToken& stop,
                           Clock::time_point start, ContactSolution* solution);
  void GatherIsland(int island, const ContactProblem& problem, const StopToken& stop,
                    ContactSolution* solution);
  StopToken StopOfIterations(int begin, int end, const StopToken& stop, Clock::time_point start);
  void ScatterIsland(int island, const ContactProblem& problem, ContactSolution* solution);
  void SolveIslandAt(int position, int task, const ContactProblem& problem,
                     const SolverOptions& options, const StopToken& stop, Clock::time_point start,
                     ContactSolution* solution);
  void Iterate(const IslandView& view, int task, const SolverOptions& options,
               const StopToken& stop, IslandReport* report);
  Clock::duration TimeAfterIterations(int position) const;

  int num_threads() const { return arena != nullptr ? arena->num_threads() : 1; }
  // The plan that an island is factored by; null: dense, or swept.
  const EliminationPlan* PlanOf(int island, const SolverOptions& options) const {
    return options.newton != NewtonMethod::kGaussSeidel ? plans.plan(island) : nullptr;
  }
  template <typename Body>
  void ForTasks(Body&& body) {
    if (arena != nullptr) {
      arena->ParallelFor(schedule.num_tasks(), body);
    } else {
      for (int task = 0; task < schedule.num_tasks(); ++task) body(task);
    }
  }
  // Null: the island is worth one thread only.
  TaskArena* ArenaOf(int island) const {
    return schedule.flops(island) >= kParallelIslandFlops ? arena : nullptr;
  }

  TaskArena* arena;
  // Made for the last pattern:
  Pattern pattern;
  ConstraintGraph graph;
  SweepOrder sweep_order;
  IslandPlans plans;
  IslandSchedule schedule;
  // Made for the solve:
  std::vector<FactorPairBytes> factor_bytes;  // per task, scratch of ReserveFactors
  FactorStores factors;
  SapModel model;
  SapWorkspace workspace;
  DeadlineReserve deadline_reserve;
  // Made for its derivatives:
  AdjointData adjoint;
  std::vector<SharedInputs> shared_inputs;  // by island, then by cotangent
  std::vector<double> tangent_costs;        // by island, then by direction
};

// The layout of the last problem is kept while the pattern holds: no sorting, ordering or analysis
// is done again. Where a plan is missing, because time was short or an exception came, the next
// problem is laid out anew.
void Solver::Impl::LayOut(const ContactProblem& problem, bool split_islands,
                          const StopToken& stop) {
  if (pattern.Matches(problem, split_islands)) return;
  pattern.known = false;
  graph.Build(problem, split_islands);
  sweep_order.Build(graph);
  plans.Make(
      graph,
      stop.EarlierBy(deadline_reserve.TimeForIslands(problem.num_contacts() + problem.num_rows(),
                                                     graph.islands().count(), num_threads())),
      arena);
  schedule.Build(graph, plans);
  if (plans.complete()) pattern.Assign(problem, split_islands);
}

// Compares what the factorizations need with the limit before any of it is allocated.
// `factors_all`: also of islands that are solved by sweeps.
tl::expected<void, MemoryLimitExceeded> Solver::Impl::ReserveFactors(const SolverOptions& options,
                                                                     bool factors_all) {
  factor_bytes.assign(schedule.num_tasks(), {});
  for (int task = 0; task < schedule.num_tasks(); ++task) {
    for (int i = schedule.task_begin(task); i < schedule.task_end(task); ++i) {
      const int island = schedule.island(i);
      const EliminationPlan* plan = factors_all ? plans.plan(island) : PlanOf(island, options);
      if (plan == nullptr) continue;
      factor_bytes[task].RaiseTo(
          FactorPairBytes::Of(*plan, IsPreconditioned(*plan, options), ArenaOf(island)));
    }
  }
  const size_t needed = factors.Plan(factor_bytes, num_threads());
  if (needed > options.max_factor_bytes) {
    return tl::unexpected(MemoryLimitExceeded{needed, options.max_factor_bytes});
  }
  factors.Reserve(options.max_factor_bytes);
  return {};
}

tl::expected<void, MemoryLimitExceeded> Solver::Impl::Solve(const ContactProblem& problem,
                                                            const SolverOptions& options,
                                                            const StopToken& stop,
                                                            ContactSolution* solution) {
  const auto prepared = Prepare(problem, options, /*factors_all=*/false, stop, solution);
  if (prepared) SolveTasks(problem, options, stop, solution);
  return prepared;
}

tl::expected<void, MemoryLimitExceeded> Solver::Impl::Prepare(const ContactProblem& problem,
                                                              const SolverOptions& options,
                                                              bool factors_all,
                                                              const StopToken& stop,
                                                              ContactSolution* solution) {
  const Clock::time_point start = Clock::now();
  deadline_reserve.Start();
  LayOut(problem, options.islands, stop);
  if (!stop.Cancelled()) {  // else no island will use them
    if (const auto reserved = ReserveFactors(options, factors_all); !reserved) return reserved;
    model.Resize(problem, graph);
    workspace.Resize(graph);
  }
  PrepareSolution(problem, graph, solution);
  solution->times.islands_s = SecondsSince(start);
  return {};
}

void Solver::Impl::SolveTasks(const ContactProblem& problem, const SolverOptions& options,
                              const StopToken& stop, ContactSolution* solution) {
  const Clock::time_point start = Clock::now();
  ForTasks([&](int task) { SolveTask(problem, options, stop, task, solution); });
  SumCosts(solution);
  solution->times.solve_s = SecondsSince(start);
}

tl::expected<void, MemoryLimitExceeded> Solver::Impl::Differentiate(
    const ContactProblem& problem, const SolverOptions& options, const DerivativeRequest& request,
    const StopToken& stop, ContactSolution* solution, Derivatives* derivatives) {
  const auto prepared = Prepare(problem, options, /*factors_all=*/true, stop, solution);
  if (!prepared) return prepared;
  SolveTasks(problem, options, stop, solution);
  const Clock::time_point start = Clock::now();
  if (!stop.Cancelled()) adjoint.Resize(graph, !request.directions.empty());
  PrepareDerivatives(problem, graph, request, derivatives);
  const int islands = graph.islands().count();
  shared_inputs.assign(islands * request.cotangents.size(), {});
  tangent_costs.assign(islands * request.directions.size(), 0.0);
  ForTasks([&](int task) {
    for (int i = schedule.task_begin(task); i < schedule.task_end(task); ++i) {
      DifferentiateIslandAt(schedule.island(i), task, problem, options, request, stop, solution,
                            derivatives);
    }
  });
  SumCosts(solution);
  SumOverIslands(islands, shared_inputs, tangent_costs, derivatives);
  if (shared_inputs.size() > kMostKeptSums) std::vector<SharedInputs>().swap(shared_inputs);
  solution->times.solve_s += SecondsSince(start);
  return {};
}

void Solver::Impl::DifferentiateIslandAt(int island, int task, const ContactProblem& problem,
                                         const SolverOptions& options,
                                         const DerivativeRequest& request, const StopToken& stop,
                                         ContactSolution* solution, Derivatives* derivatives) {
  const IslandView view{graph, model, island, ArenaOf(island)};
  const DerivativeScope scope{problem, view, stop, workspace.data, &adjoint, request.hold_delassus};
  const size_t cotangents = request.cotangents.size();
  const size_t directions = request.directions.size();
  IslandDerivatives of_island{
      .gradients = derivatives->gradients,
      .shared = std::span(shared_inputs).subspan(island * cotangents, cotangents),
      .tangents = derivatives->tangents,
      .costs = std::span(tangent_costs).subspan(island * directions, directions),
      .kink_margin = &derivatives->kink_margin[island],
      .report = &solution->islands[island]};
  IslandReport& report = solution->islands[island];
  const IslandReport of_solve = report;
  const Clock::time_point start = Clock::now();
  const auto differentiate = [&](const PlannedFactors& factorization) {
    return DifferentiateIsland(scope, options, request, factorization, &workspace, &of_island);
  };
  AdjointStatus& status = derivatives->adjoint_status[island];
  if (const EliminationPlan* plan = plans.plan(island); plan != nullptr) {
    const FactorStores::Lease store(&factors, task);
    status = differentiate({plan, store.factors()});
  } else {
    status = differentiate({});
  }
  if (stop.Cancelled() || of_solve.status == SolveStatus::kCancelled) {
    report = of_solve;  // what was cut off means nothing
  } else {
    ScatterIterate(problem, view, workspace.data, solution);
    report.solve_time_s += SecondsSince(start);
  }
}

void Solver::Impl::SolveTask(const ContactProblem& problem, const SolverOptions& options,
                             const StopToken& stop, int task, ContactSolution* solution) {
  // One reading of the clock per island or vector of islands, since it takes longer than the sweep
  // of a small one.
  Clock::time_point start = Clock::now();
  for (int i = schedule.task_begin(task); i < schedule.task_end(task);) {
    int end = EndOfSingleBodies(i, schedule.task_end(task), options);
    if (end > i) {
      SolveSingleBodiesAt(i, end, problem, options, stop, start, solution);
    } else {
      end = i + 1;
      SolveIslandAt(i, task, problem, options, stop, start, solution);
    }
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - start).count() / (end - i);
    for (; i < end; ++i) solution->islands[schedule.island(i)].solve_time_s = seconds;
    start = now;
  }
}

int Solver::Impl::EndOfSingleBodies(int position, int end, const SolverOptions& options) const {
  const auto range = [&](int i) -> const IslandRange& {
    return graph.island_ranges()[schedule.island(i)];
  };
  int i = position;
  while (i < std::min(end, position + kMaxSingleBodyIslands) &&
         IsSingleBodyIsland(range(i), options) &&
         range(i).num_contacts == range(position).num_contacts) {
    ++i;
  }
  return i;
}

// `start` is when the first island began to be gathered.
void Solver::Impl::SolveSingleBodiesAt(int begin, int end, const ContactProblem& problem,
                                       const SolverOptions& options, const StopToken& stop,
                                       Clock::time_point start, ContactSolution* solution) {
  std::array<int, kMaxSingleBodyIslands> islands;
  for (int i = begin; i < end; ++i) {
    islands[i - begin] = schedule.island(i);
    GatherIsland(schedule.island(i), problem, stop, solution);
  }
  if (!stop.Cancelled()) {
    SolveSingleBodyIslands(graph, model, std::span(islands).first(end - begin), options,
                           StopOfIterations(begin, end, stop, start), &workspace.data,
                           solution->islands);
  }
  for (int i = begin; i < end; ++i) ScatterIsland(schedule.island(i), problem, solution);
}

// `start` is when the island began to be gathered.
void Solver::Impl::SolveIslandAt(int position, int task, const ContactProblem& problem,
                                 const SolverOptions& options, const StopToken& stop,
                                 Clock::time_point start, ContactSolution* solution) {
  const int island = schedule.island(position);
  GatherIsland(island, problem, stop, solution);
  if (!stop.Cancelled()) {
    Iterate({graph, model, island, ArenaOf(island)}, task, options,
            StopOfIterations(position, position + 1, stop, start), &solution->islands[island]);
  }
  ScatterIsland(island, problem, solution);
}

// Also the guess, and a blank report.
void Solver::Impl::GatherIsland(int island, const ContactProblem& problem, const StopToken& stop,
                                ContactSolution* solution) {
  solution->islands[island] = {.status = SolveStatus::kCancelled};
  if (!stop.Cancelled()) model.Gather(problem, graph, island, stop, ArenaOf(island));
  if (!stop.Cancelled()) GatherGuess(problem, graph, island, &workspace.data.v);
}

void Solver::Impl::ScatterIsland(int island, const ContactProblem& problem,
                                 ContactSolution* solution) {
  const IslandView view{graph, model, island, nullptr};
  IslandReport& report = solution->islands[island];
  if (report.status != SolveStatus::kCancelled) {
    ScatterIterate(problem, view, workspace.data, solution);
  } else {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    report = {.status = SolveStatus::kCancelled,
              .iterations = report.iterations,
              .factorizations = report.factorizations,
              .momentum_residual = kInfinity,
              .optimality_gap_bound = kInfinity};
    ScatterGuess(problem, graph, island, solution);
  }
  report.dofs = view.range().num_velocities();
  report.contacts = view.range().num_contacts;
  report.rows = view.range().num_rows;
}

// When the iterations of the islands at positions [begin, end) are to end.
StopToken Solver::Impl::StopOfIterations(int begin, int end, const StopToken& stop,
                                         Clock::time_point start) {
  if (!stop.HasDeadline()) return stop;
  int constraints = 0;
  double cubed_dofs = 0;
  for (int i = begin; i < end; ++i) {
    const IslandRange& range = graph.island_ranges()[schedule.island(i)];
    constraints += range.num_constraints();
    cubed_dofs += range.cubed_dofs;
  }
  // Large trees take longer to gather than their constraints tell.
  if (cubed_dofs < kLargeTrees * constraints) {
    deadline_reserve.Gathered(constraints, Clock::now() - start);
  }
  return stop.EarlierBy(TimeAfterIterations(begin));
}

void Solver::Impl::Iterate(const IslandView& view, int task, const SolverOptions& options,
                           const StopToken& stop, IslandReport* report) {
  const EliminationPlan* plan = PlanOf(view.island, options);
  if (plan == nullptr) {
    return SolveIsland(view, options, stop, sweep_order, {}, &workspace, report);
  }
  const FactorStores::Lease store(&factors, task);
  SolveIsland(view, options, stop, sweep_order, {plan, store.factors()}, &workspace, report);
}

// From the last iterate of the island at this position of the schedule to the end of the solve.
Clock::duration Solver::Impl::TimeAfterIterations(int position) const {
  const int constraints = graph.island_ranges()[schedule.island(position)].num_constraints();
  return deadline_reserve.TimeToReport(constraints) +
         deadline_reserve.TimeToReportTrees(schedule.cubed_dofs_from(position)) +
         deadline_reserve.TimeForIslands(schedule.constraints_after(position),
                                         schedule.islands_after(position), num_threads());
}

std::string MemoryLimitExceeded::Message() const {
  const auto mebibytes = [](size_t bytes) {
    constexpr size_t kMebibyte = size_t{1} << 20;
    return std::to_string(bytes / kMebibyte + (bytes % kMebibyte != 0)) + " MiB";
  };
  return "the factorization of this problem takes up to " + mebibytes(needed_bytes) +
         "; a solve may take " + mebibytes(allowed_bytes);
}

Solver::Solver(TaskArena* arena) : impl_(std::make_unique<Impl>(arena)) {}
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

void Solver::UseArena(TaskArena* arena) { impl_->arena = arena; }

size_t Solver::factor_bytes() const { return impl_->factors.storage_bytes(); }

tl::expected<void, MemoryLimitExceeded> Solver::Solve(const ContactProblem& problem,
                                                      const SolverOptions& options,
                                                      const StopToken& stop,
                                                      ContactSolution* solution) {
  return impl_->Solve(problem, options, stop, solution);
}

tl::expected<void, MemoryLimitExceeded> Solver::Differentiate(
    const ContactProblem& problem, const SolverOptions& options,
    std::span<const Cotangent> cotangents, std::span<const ProblemDifferential> directions,
    const DerivativeOptions& derivative_options, const StopToken& stop, ContactSolution* solution,
    Derivatives* derivatives) {
  return impl_->Differentiate(problem, options,
                              {cotangents, directions, derivative_options.hold_delassus}, stop,
                              solution, derivatives);
}

Derivatives Differentiate(const ContactProblem& problem, const SolverOptions& options,
                          std::span<const Cotangent> cotangents,
                          std::span<const ProblemDifferential> directions,
                          const DerivativeOptions& derivative_options, ContactSolution* solution) {
  SolverOptions unlimited = options;
  unlimited.max_factor_bytes = std::numeric_limits<size_t>::max();
  ContactSolution unwanted;
  Derivatives derivatives;
  (void)Solver(nullptr).Differentiate(problem, unlimited, cotangents, directions,
                                      derivative_options, StopToken(),
                                      solution != nullptr ? solution : &unwanted, &derivatives);
  return derivatives;
}

ContactSolution Solve(const ContactProblem& problem, const SolverOptions& options) {
  SolverOptions unlimited = options;
  unlimited.max_factor_bytes = std::numeric_limits<size_t>::max();
  ContactSolution solution;
  (void)Solver(nullptr).Solve(problem, unlimited, StopToken(), &solution);
  return solution;
}

}  // namespace sap
