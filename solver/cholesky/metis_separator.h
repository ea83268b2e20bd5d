// A small set of blocks whose removal splits a block graph in two parts of about the same weight,
// found by METIS.
//
// METIS is not trusted: graphs that it is known to mishandle never reach it, and its result is
// checked. Its random numbers are replaced by a sequence that starts again at every call, so the
// result depends on the graph alone. Safe on several threads at once: the entry used here, unlike
// METIS_NodeND, installs no signal handlers and has no state except that of its thread. A call
// cannot be stopped and takes about 1.5 ms per 1000 blocks. Where memory runs out, METIS ends the
// process.
#pragma once

#include <optional>
#include <vector>

#include "solver/cholesky/block_graph.h"

namespace sap {

// The part that a block belongs to. No edge joins kFirst and kSecond.
enum class Side : unsigned char { kFirst, kSecond, kSeparator };

// [N] by block, a function of the graph alone. Both sides have blocks. Empty where METIS finds no
// such set or must not be asked: for tiny graphs, for graphs without edges, and where its random
// numbers cannot be replaced (see the .cc).
std::optional<std::vector<Side>> VertexSeparator(const BlockGraph& graph);

}  // namespace sap
