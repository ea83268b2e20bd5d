// Elimination plans by pattern, so that a pattern seen before is neither ordered nor analyzed
// again.
//
// A plan is a pure function of its pattern; the cache saves recomputation and can change no answer.
// Bounded: the plan unused for longest goes first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "solver/cholesky/elimination_plan.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"

namespace sap {

class PlanCache {
 public:
  // Empty until MakePlans() has made it. Stays valid until the problem after the next
  // BeginProblem().
  using Plan = std::optional<EliminationPlan>;

  // Starts a new problem: plans handed out for the last one may be dropped from now on.
  void BeginProblem() { ++now_; }

  // The plan of the pattern, kept or yet to be made.
  const Plan* Request(const BlockPattern& pattern);

  // Makes the plans that were requested and are not there yet, in the arena if there is one.
  // Stopped, it leaves some of them empty until another call.
  void MakePlans(const StopToken& stop, TaskArena* arena);

  // Plans made since construction.
  int64_t plans_made() const { return plans_made_; }

 private:
  struct Entry {
    uint64_t hash;
    std::vector<int> block_size, edge_a, edge_b;
    int64_t last_used;
    Plan plan;

    BlockPattern pattern() const { return {block_size, edge_a, edge_b}; }
  };

  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> missing_;  // scratch of MakePlans
  int64_t now_{0};
  int64_t plans_made_{0};
};

}  // namespace sap
