// Minimum degree ordering: eliminates next the block that leaves the smallest front.
//
// Best for graphs of up to a few hundred blocks and for those with little fill (chains, trees,
// heaps). Eliminated blocks are kept as cliques ("elements") and never filled in, degrees are upper
// bounds that cost no search, and blocks with the same neighbours are eliminated together:
// [Amestoy, Davis and Duff 1996, An approximate minimum degree ordering algorithm]. Degrees count
// rows, not blocks. Equal degrees are taken by a rule that depends on the graph alone.
#pragma once

#include <optional>
#include <vector>

#include "solver/cholesky/block_graph.h"
#include "solver/parallel/stop_token.h"

namespace sap {

// Element k of the result is the block eliminated k-th. The last num_kept blocks stay: they count
// for the fronts of the others, as what is eliminated after this graph does, and are not in the
// result. A permutation of the others for every graph, also for one without edges or blocks. Empty
// if it was stopped.
std::optional<std::vector<int>> MinimumDegreeOrder(const BlockGraph& graph, const StopToken& stop,
                                                   int num_kept = 0);

}  // namespace sap
