#include "solver/solve.h"

#include <limits>
#include <string>

#include "solver/run/shard_run.h"
#include "solver/run/solve_run.h"

namespace sap {

struct Solver::Impl {
  explicit Impl(TaskArena* arena) { state.arena = arena; }

  SolverState state;
  ShardWorkspaces shards;
};

std::string MemoryLimitExceeded::Message() const {
  return "the factorization of this problem takes up to " +
         Mebibytes(static_cast<int64_t>(needed_bytes)) + "; a solve may take " +
         Mebibytes(static_cast<int64_t>(allowed_bytes));
}

Solver::Solver(TaskArena* arena) : impl_(std::make_unique<Impl>(arena)) {}
Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

void Solver::UseArena(TaskArena* arena) { impl_->state.arena = arena; }
TaskArena* Solver::arena() const { return impl_->state.arena; }

size_t Solver::storage_bytes() const {
  return sizeof(Impl) + StorageBytes(impl_->state, impl_->shards);
}
size_t Solver::factor_bytes() const {
  return impl_->state.factors.storage_bytes() + impl_->shards.factor_bytes();
}

void Solver::DropUnusedPlans() {
  impl_->state.plans.DropUnused();
  impl_->shards.DropUnusedPlans();
}

tl::expected<void, MemoryLimitExceeded> Solver::Solve(const ContactProblem& problem,
                                                      const SolverOptions& options,
                                                      const StopToken& stop,
                                                      ContactSolution* solution) {
  SolveRun run(problem, options, stop, &impl_->state, solution);
  const auto prepared = run.Prepare(/*differentiates=*/false);
  if (prepared) run.SolveIslands();
  return prepared;
}

tl::expected<bool, MemoryLimitExceeded> Solver::Solve(
    const ShardedProblem& problem, std::span<const double> guess, const SolverOptions& options,
    const StopToken& stop, ContactSolution* solution, SharedIslands* shared) {
  return ShardRun(problem, guess, options, stop, impl_->state.arena, &impl_->shards, shared,
                  solution)
      .Solve();
}

tl::expected<void, MemoryLimitExceeded> Solver::Differentiate(
    const ContactProblem& problem, const SolverOptions& options,
    std::span<const Cotangent> cotangents, std::span<const ProblemDifferential> directions,
    const DerivativeOptions& derivative_options, const StopToken& stop, ContactSolution* solution,
    Derivatives* derivatives) {
  const DerivativeRequest request{cotangents, directions, derivative_options.hold_delassus};
  SolveRun run(problem, options, stop, &impl_->state, solution);
  const auto prepared = run.Prepare(/*differentiates=*/true);
  if (!prepared) return prepared;
  run.SolveIslands();
  run.DifferentiateIslands(request, derivatives);
  return {};
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
