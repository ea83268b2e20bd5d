// Elimination plans by pattern, so that a pattern seen before is neither ordered nor analyzed
// again.
//
// A plan is a pure function of its pattern; the cache saves recomputation and can change no answer.
// Bounded: the plan unused for longest goes first.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "solver/elimination_plan.h"

namespace sap {

class PlanCache {
 public:
  // Starts a new problem: plans handed out for the last one may be dropped from now on.
  void BeginProblem() { ++now_; }

  // The plan of the pattern. Stays valid until the problem after the next BeginProblem().
  const EliminationPlan* Get(const BlockPattern& pattern);

  // Plans made since construction.
  int64_t plans_made() const { return plans_made_; }

 private:
  struct Entry {
    uint64_t hash;
    std::vector<int> block_size, edge_a, edge_b;
    int64_t last_used;
    EliminationPlan plan;
  };

  std::vector<std::unique_ptr<Entry>> entries_;
  int64_t now_{0};
  int64_t plans_made_{0};
};

}  // namespace sap
