// One solve of a scene in shards: each is read, laid out, solved and answered as one task.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "solver/run/deadline_reserve.h"
#include "solver/run/sharded_problem.h"
#include "solver/solve.h"
#include "solver/split/island_sharing.h"

namespace sap {

// Storage in which shards are solved.
struct ShardWorkspace {
  OwnedContactProblem arrays;
  IslandSharing sharing;
  ContactProblem problem;
  std::vector<double> guess;
  Solver solver{nullptr};
  ContactSolution solution;

  size_t storage_bytes() const;
};

// Workspaces of a solver for scenes in shards: one for each thread, for shards that are laid out in
// every step, and one for the shard of large islands, which keeps their layout and plans.
class ShardWorkspaces {
 public:
  // A workspace that is idle, or a new one. Thread-safe, as Give is.
  std::unique_ptr<ShardWorkspace> Acquire();
  void Release(std::unique_ptr<ShardWorkspace> workspace);
  ShardWorkspace* large();

  size_t storage_bytes() const;
  size_t factor_bytes() const;
  void DropUnusedPlans();

 private:
  template <typename Visit>
  void ForEach(const Visit& visit) const;

  std::unique_ptr<ShardWorkspace> large_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ShardWorkspace>> idle_;  // the one used last at the end
};

class ShardRun {
 public:
  // `guess`: of all velocities, in place of the problem's own; or empty. `shared`: of the batch;
  // null: none. There is no guess where there is a batch.
  ShardRun(const ShardedProblem& problem, std::span<const double> guess,
           const SolverOptions& options, const StopToken& stop, TaskArena* arena,
           ShardWorkspaces* workspaces, SharedIslands* shared, ContactSolution* solution)
      : problem_(problem),
        guess_(guess),
        options_(options),
        stop_(stop),
        arena_(arena),
        workspaces_(*workspaces),
        shared_(shared),
        solution_(*solution) {}

  // As Solver::Solve.
  tl::expected<bool, MemoryLimitExceeded> Solve();

 private:
  using Clock = std::chrono::steady_clock;

  void SolveShard(int position);
  void SolveIn(ShardWorkspace* workspace, int position);
  StopToken StopOfShard(int position, Clock::duration reading);

  const ShardedProblem& problem_;
  const std::span<const double> guess_;
  const SolverOptions& options_;
  const StopToken& stop_;
  TaskArena* const arena_;  // null: all on the calling thread
  ShardWorkspaces& workspaces_;
  SharedIslands* const shared_;
  ContactSolution& solution_;
  DeadlineReserve deadline_reserve_;
  std::atomic<int64_t> read_constraints_{0};  // with the time that reading their shards took
  std::atomic<int64_t> reading_ns_{0};
  std::atomic<int> shared_islands_{0};  // as in the solution
  std::atomic<int64_t> shared_constraints_{0};
  std::atomic<bool> refused_{false};
  std::mutex mutex_;  // of the error
  std::optional<MemoryLimitExceeded> error_;
};

}  // namespace sap
