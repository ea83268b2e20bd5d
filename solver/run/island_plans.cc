#include "solver/run/island_plans.h"

#include <algorithm>

#include "solver/newton/hessian.h"
#include "solver/pools/constraint_pools.h"

namespace sap {

namespace {

// `attempt` is the longest time in which a plan of this problem could not be made.
StopToken PlanningStop(const StopToken& stop, StopToken::Clock::duration attempt) {
  if (!stop.HasDeadline()) return stop;
  const StopToken::Clock::duration left = stop.TimeLeft();
  if (left / 2 > attempt) return stop.EarlierBy(left / 2);
  // Times vary by less than an eighth; a third attempt in the same time would fail again.
  if (left > attempt + attempt / 8) return stop;
  return stop.Expired();
}

}  // namespace

void IslandPlans::Make(const ConstraintGraph& graph, const StopToken& stop, TaskArena* arena) {
  cache_.BeginProblem();
  plans_.clear();
  for (const IslandRange& range : graph.island_ranges()) {
    plans_.push_back(IsDense(graph, range) ? nullptr : Request(graph, range));
  }
  cache_.MakePlans(PlanningStop(stop, cache_.longest_attempt()), arena);
  complete_ = std::ranges::all_of(
      plans_, [](const PlanCache::Plan* plan) { return plan == nullptr || plan->has_value(); });
}

const PlanCache::Plan* IslandPlans::Request(const ConstraintGraph& graph,
                                            const IslandRange& range) {
  edge_a_.clear();
  edge_b_.clear();
  for (int p = range.pair_begin; p < range.pair_end; ++p) {
    const TreePair& pair = graph.pairs()[p];
    edge_a_.push_back(pair.low - range.slot_begin);
    edge_b_.push_back(pair.high - range.slot_begin);
  }
  FindVarying(graph, range);
  return cache_.Request(
      {graph.dofs().subspan(range.slot_begin, range.num_trees()), edge_a_, edge_b_, varies_});
}

// The blocks of H that change with v: those of trees in constraints that are not quadratic. Only
// coupled trees are in an island without any.
void IslandPlans::FindVarying(const ConstraintGraph& graph, const IslandRange& range) {
  varies_.clear();
  if (!range.coupled) return;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    bool varies = false;
    ForEachPool([&](auto pool) {
      using Jacobians = typename PoolAt<pool>::Jacobians;
      varies |= !IsQuadratic(pool) && !Jacobians::SidesOf(LayoutOf(graph, pool), slot).empty();
    });
    varies_.push_back(varies ? 1 : 0);
  }
}

}  // namespace sap
