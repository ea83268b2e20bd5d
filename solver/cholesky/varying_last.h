// Orders of elimination in which the blocks that vary (BlockPattern) come last: all others form
// fronts that a factorization after the first leaves as they are.
#pragma once

#include <optional>
#include <vector>

#include "solver/cholesky/block_graph.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// Pure functions of the graph, empty if they were stopped.
class VaryingLast {
 public:
  // Requires graph.varies.
  VaryingLast(const BlockGraph& graph, const StopToken& stop);

  std::optional<std::vector<int>> MinimumDegree() const;
  // Dissects the blocks that do not vary. Their order does not change the fill of those that do,
  // which are in the order of minimum degree.
  std::optional<std::vector<int>> NestedDissection(const StopToken& stop, TaskArena* arena) const;

 private:
  std::vector<int> block_;  // [N] of the graph: those that do not vary first
  int num_varying_{0};
  BlockGraph renumbered_;  // by their place in it
  std::optional<std::vector<int>> minimum_degree_;
};

}  // namespace sap
