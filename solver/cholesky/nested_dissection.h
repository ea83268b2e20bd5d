// Nested dissection ordering: a separator splits the graph, is numbered last, and both sides, which
// can then be eliminated independently, are split in the same way [George 1973, Nested dissection
// of a regular finite element mesh].
//
// Separators are found by METIS (vertex_separator), pieces too small for them are ordered by
// minimum degree. Best above some 400 blocks in contact on all sides.
#pragma once

#include <optional>
#include <vector>

#include "solver/cholesky/block_graph.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// Element k of the result is the block eliminated k-th; a permutation for every graph, and a
// function of the graph alone. Pieces are split in the arena if there is one. Empty if it was
// stopped.
std::optional<std::vector<int>> NestedDissectionOrder(const BlockGraph& graph,
                                                      const StopToken& stop, TaskArena* arena);

}  // namespace sap
