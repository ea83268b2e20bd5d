#include "solver/run/shard_run.h"

#include <algorithm>
#include <utility>

namespace sap {

size_t ShardWorkspace::storage_bytes() const {
  size_t bytes = StorageBytes(sharing, problem, guess, solution) + solver.storage_bytes();
  ForEachArray(
      [&](std::string_view, const auto&, const auto& array) { bytes += StorageBytes(array); },
      arrays);
  return bytes;
}

std::unique_ptr<ShardWorkspace> ShardWorkspaces::Acquire() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<ShardWorkspace>();
  std::unique_ptr<ShardWorkspace> workspace = std::move(idle_.back());
  idle_.pop_back();
  return workspace;
}

void ShardWorkspaces::Release(std::unique_ptr<ShardWorkspace> workspace) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(workspace));
}

ShardWorkspace* ShardWorkspaces::large() {
  if (large_ == nullptr) large_ = std::make_unique<ShardWorkspace>();
  return large_.get();
}

template <typename Visit>
void ShardWorkspaces::ForEach(const Visit& visit) const {
  if (large_ != nullptr) visit(*large_);
  for (const std::unique_ptr<ShardWorkspace>& workspace : idle_) visit(*workspace);
}

size_t ShardWorkspaces::storage_bytes() const { return StorageBytes(large_, idle_); }

size_t ShardWorkspaces::factor_bytes() const {
  size_t bytes = 0;
  ForEach([&](const ShardWorkspace& workspace) { bytes += workspace.solver.factor_bytes(); });
  return bytes;
}

void ShardWorkspaces::DropUnusedPlans() {
  ForEach([](ShardWorkspace& workspace) {
    workspace.problem.DropUnusedPlans();
    workspace.solver.DropUnusedPlans();
  });
}

tl::expected<bool, MemoryLimitExceeded> ShardRun::Solve() {
  const Clock::time_point start = Clock::now();
  deadline_reserve_.Start(options_.coulomb.has_value());
  problem_.shards().Prepare(&solution_);
  const Clock::time_point prepared = Clock::now();
  const int count = problem_.shards().count();
  if (arena_ != nullptr) {
    arena_->ParallelFor(count, [this](int position) { SolveShard(position); });
  } else {
    for (int position = 0; position < count; ++position) SolveShard(position);
  }
  if (refused_.load()) return false;
  if (error_) return tl::unexpected(*error_);
  for (const IslandReport& report : solution_.islands) solution_.cost += report.cost;
  solution_.shared_islands = shared_islands_.load();
  solution_.shared_constraints = shared_constraints_.load();
  solution_.times = {.islands_s = std::chrono::duration<double>(prepared - start).count(),
                     .solve_s = std::chrono::duration<double>(Clock::now() - prepared).count()};
  return true;
}

void ShardRun::SolveShard(int position) {
  // No answer will be used.
  if (refused_.load(std::memory_order_relaxed) || stop_.Cancelled()) return;
  if (position == 0 && problem_.neighbours().has_large()) {
    ShardWorkspace* const workspace = workspaces_.large();
    workspace->solver.UseArena(arena_);
    return SolveIn(workspace, position);
  }
  // Lost in an exception, which leaves it in an undefined state.
  std::unique_ptr<ShardWorkspace> workspace = workspaces_.Acquire();
  SolveIn(workspace.get(), position);
  workspaces_.Release(std::move(workspace));
}

void ShardRun::SolveIn(ShardWorkspace* workspace, int position) {
  const int shard = problem_.neighbours().order()[position];
  const Clock::time_point start = Clock::now();
  problem_.shards().Extract(shard, &workspace->arrays);
  ContactProblemView view = ViewOf(workspace->arrays);
  if (shared_ != nullptr) view = workspace->sharing.Remainder(view, shared_);
  const bool read = workspace->problem.Reset(view, problem_.limits()).has_value();
  if (!read || (options_.rest && workspace->problem.MissingInitialVelocity() != nullptr)) {
    return refused_.store(true);
  }
  if (!guess_.empty()) {
    problem_.shards().ExtractVelocities(shard, guess_, &workspace->guess);
    workspace->problem.SetGuess(workspace->guess);
  }
  const StopToken stop = StopOfShard(position, Clock::now() - start);
  ContactSolution* const answer = &workspace->solution;
  if (const auto solved = workspace->solver.Solve(workspace->problem, options_, stop, answer);
      !solved) {
    const std::lock_guard lock(mutex_);
    error_ = solved.error();
    return;
  }
  if (shared_ != nullptr) {
    workspace->sharing.Complete(options_, answer);
    shared_islands_.fetch_add(answer->shared_islands);
    shared_constraints_.fetch_add(answer->shared_constraints);
  }
  problem_.shards().Place(shard, *answer, &solution_);
}

// When a shard that took so long to be read is to be answered: the later ones need time even
// without iterations.
StopToken ShardRun::StopOfShard(int position, Clock::duration reading) {
  if (!stop_.HasDeadline()) return stop_;
  const Neighbours& neighbours = problem_.neighbours();
  const int64_t here = neighbours.constraints(neighbours.order()[position]);
  const int64_t read = read_constraints_.fetch_add(here) + here;
  const int64_t nanoseconds = reading_ns_.fetch_add(reading.count()) + reading.count();
  const int threads = arena_ != nullptr ? arena_->num_threads() : 1;
  const int64_t after = neighbours.constraints_after(position);
  const auto to_read = Clock::duration(static_cast<int64_t>(
      static_cast<double>(after) / static_cast<double>(std::max<int64_t>(read, 1)) *
      static_cast<double>(nanoseconds) / threads));
  const int islands = static_cast<int>(solution_.islands.size());  // no fewer than are left
  return stop_.EarlierBy(to_read + deadline_reserve_.TimeForIslands(after, islands, threads));
}

}  // namespace sap
