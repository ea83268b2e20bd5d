// Nested dissection ordering: a separator splits the graph and is eliminated last; the two sides,
// which can be eliminated independently, are split in the same way [George 1973, Nested dissection
// of a regular finite element mesh].
//
// Separators are found by metis_separator; pieces of up to 150 blocks are ordered by minimum
// degree. In piles this gives cheaper factorizations than minimum degree from 300 to 400 blocks on;
// EliminationPlan tries it above 200 and keeps the cheaper order.
#pragma once

#include <optional>
#include <vector>

#include "solver/cholesky/block_graph.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"

namespace sap {

// Element k of the result is the block eliminated k-th. A permutation for every graph, and a
// function of the graph alone. Pieces are split concurrently by the threads of the arena, which may
// be null. The stop token is polled before each piece and within minimum degree, but a separator is
// finished. The last num_kept blocks are not in the result, as in minimum_degree.h. Empty if it was
// stopped.
std::optional<std::vector<int>> NestedDissectionOrder(const BlockGraph& graph,
                                                      const StopToken& stop, TaskArena* arena,
                                                      int num_kept = 0);

}  // namespace sap
