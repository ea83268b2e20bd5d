// Approximate minimum degree ordering: eliminates next the block whose front is the smallest.
//
// The best ordering for graphs of up to a few hundred blocks and for graphs with little fill
// (chains, trees, heaps). Eliminated blocks are represented by cliques ("elements") instead of fill
// edges, degrees are upper bounds, and blocks with the same neighbors are eliminated together
// [Amestoy, Davis and Duff 1996, An approximate minimum degree ordering algorithm]. Degrees count
// rows, not blocks. Ties are broken by a rule that depends on the graph alone.
#pragma once

#include <optional>
#include <vector>

#include "solver/cholesky/block_graph.h"
#include "solver/parallel/stop_token.h"

namespace sap {

// Element k of the result is the block eliminated k-th. The last num_kept blocks are not eliminated
// and not in the result: they stand for blocks that are eliminated later, and count in the degrees
// of the others. For every graph, also without edges or blocks, the result is a permutation of the
// blocks that are eliminated. Empty if it was stopped.
std::optional<std::vector<int>> MinimumDegreeOrder(const BlockGraph& graph, const StopToken& stop,
                                                   int num_kept = 0);

// As if the last num_last blocks were kept, and then those among themselves: the result has all
// blocks. A block with very many neighbors is among the last in any case.
std::optional<std::vector<int>> MinimumDegreeOrderInTwoParts(const BlockGraph& graph,
                                                             const StopToken& stop, int num_last);

}  // namespace sap
