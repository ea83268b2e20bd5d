// A small set of blocks whose removal splits a block graph in two of about the same weight, by
// METIS.
//
// METIS is not trusted: it never sees a graph that it is known to mishandle, what it returns is
// checked, and its random numbers are a sequence of its own, of which it draws so many that a stop
// is polled where it does: at most some 0.1 ms apart at 1000 blocks, 1 ms at 10,000. Safe on
// several threads at once, since the entry used here, unlike METIS_NodeND, installs no signal
// handlers and has no state beside that of its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/cholesky/block_graph.h"
#include "solver/parallel/stop_token.h"

namespace sap {

// What becomes of a block. No edge joins kFirst and kSecond.
enum class Side : unsigned char { kFirst, kSecond, kSeparator };

// [N] by block, a function of the graph alone. Both sides have blocks. Empty where METIS finds no
// such set or cannot be asked, and where it was stopped.
std::optional<std::vector<Side>> VertexSeparator(const BlockGraph& graph, const StopToken& stop);

}  // namespace sap
