// Nested dissection ordering by METIS: separators last, so that what they separate can be
// eliminated independently. Best above some 400 blocks in contact on all sides.
//
// METIS is not trusted: it runs under one process-wide lock with its own sequence of random
// numbers, never sees a graph that it is known to mishandle, and what it returns is checked.
//
// While METIS runs it replaces the handlers of SIGTERM and SIGABRT. A process that must not lose a
// SIGTERM has to take it by sigwait or signalfd, with the signal blocked in all threads.
#pragma once

#include <optional>
#include <vector>

#include "solver/block_graph.h"

namespace sap {

// Element k of the result is the block eliminated k-th; a function of the graph alone. Empty where
// METIS cannot be used: use another ordering then.
std::optional<std::vector<int>> NestedDissectionOrder(const BlockGraph& graph);

}  // namespace sap
