// Elimination plans by pattern, so that a pattern seen before is neither ordered nor analyzed
// again.
//
// A plan is a pure function of its pattern; the cache saves recomputation and changes no answer.
// Plans of the current problem are all kept; with them, those used last, up to a number of bytes or
// to a few times those of the current problem, whichever is more: a large pile that comes to rest
// alternates between a few patterns, while a scene that moves makes new ones at every step, of
// which none comes again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "solver/cholesky/elimination_plan.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"

namespace sap {

class PlanCache {
 public:
  // Empty until MakePlans() has made it. Valid until the MakePlans() of the next problem.
  using Plan = std::optional<EliminationPlan>;

  // Some hundred plans of a hundred bodies.
  static constexpr size_t kDefaultBytes = size_t{2} << 20;
  // Bound on all bytes, as a multiple of the bytes of the current problem.
  static constexpr size_t kProblems = 8;

  explicit PlanCache(size_t max_bytes = kDefaultBytes) : max_bytes_(max_bytes) {}

  // Starts a problem.
  void BeginProblem();

  // The plan of a pattern of this problem, kept or yet to be made.
  const Plan* Request(const BlockPattern& pattern);

  // The longest time in which a plan that this problem misses could not be made; 0 if none of them
  // was tried.
  using Duration = StopToken::Clock::duration;
  Duration longest_attempt() const;

  // Once all patterns of the problem are requested: makes the plans that are missing, in the arena
  // if there is one, then drops plans of earlier problems beyond the bound. Stopped, it leaves some
  // plans empty; those that are finished are kept.
  void MakePlans(const StopToken& stop, TaskArena* arena);

  // Drops all plans of earlier problems.
  void DropUnused() { DropUnusedAbove(0); }

  // Since construction.
  int64_t plans_made() const { return plans_made_; }
  int64_t patterns_compared() const { return patterns_compared_; }
  // Bytes of all plans and their patterns.
  size_t storage_bytes() const { return storage_bytes_; }

 private:
  struct Entry {
    uint64_t hash;
    std::vector<int> block_size, edge_a, edge_b;
    std::vector<uint8_t> varies;
    int64_t last_used;  // number of the problem
    Duration longest_attempt{0};
    Plan plan;

    BlockPattern pattern() const { return {block_size, edge_a, edge_b, varies}; }
    bool Matches(const BlockPattern& other) const;
    size_t size_bytes() const;
  };
  using Entries = std::list<Entry>;

  void MakeMissing(const StopToken& stop, TaskArena* arena);
  void Use(Entries::iterator entry);
  void DropUnusedAbove(size_t bytes);

  const size_t max_bytes_;
  Entries entries_;  // by last use, the latest last
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash_;
  std::vector<Entry*> missing_;  // requested by this problem
  int64_t problem_{0};
  int64_t patterns_compared_{0};
  // Counted by the threads that make plans.
  std::atomic<size_t> storage_bytes_{0};
  std::atomic<size_t> problem_bytes_{0};  // of these, of the current problem
  std::atomic<int64_t> plans_made_{0};
};

}  // namespace sap
