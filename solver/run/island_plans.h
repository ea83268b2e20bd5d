// The elimination plans of a problem's islands.
//
// Islands need a plan unless they are factored dense (IsDense). Planning may take longer than a
// solve has time for. Then an island has no plan and is solved by Gauss-Seidel sweeps, which need
// none: a pattern that is new gets half of the time, so that the other half is left for sweeps; a
// second attempt gets all of it; after that there is none until a solve has more time than the last
// attempt took. Plans that are finished are kept.
#pragma once

#include <vector>

#include "solver/cholesky/plan_cache.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/constraint_graph.h"

namespace sap {

class IslandPlans {
 public:
  // Plans the islands of the graph, as far as the stop allows. Plans handed out before are invalid.
  void Make(const ConstraintGraph& graph, const StopToken& stop, TaskArena* arena);

  // Null if the island needs none, or if there was no time to make it.
  const EliminationPlan* plan(int island) const {
    return plans_[island] != nullptr && *plans_[island] ? &**plans_[island] : nullptr;
  }
  // Whether every island that needs a plan has one.
  bool complete() const { return complete_; }
  // Drops the plans of earlier problems.
  void DropUnused() { cache_.DropUnused(); }
  size_t storage_bytes() const { return StorageBytes(cache_, plans_, edge_a_, edge_b_, varies_); }

 private:
  const PlanCache::Plan* Request(const ConstraintGraph& graph, const IslandRange& range);
  void FindVarying(const ConstraintGraph& graph, const IslandRange& range);

  PlanCache cache_;
  std::vector<const PlanCache::Plan*> plans_;  // per island, null: needs none
  std::vector<int> edge_a_, edge_b_;           // scratch of Request
  std::vector<uint8_t> varies_;                // the same
  bool complete_{false};
};

}  // namespace sap
