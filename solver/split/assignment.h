// Assigns the islands of a scene to servers: the largest first, each to the server with the least
// work [Graham 1969, "Bounds on Multiprocessing Timing Anomalies"]. The longest shard is at most
// 4/3 of the shortest possible.
#pragma once

#include <span>
#include <vector>

namespace sap {

// For each server that gets any, its islands, ascending. `times_s` are those of the islands; equal
// ones go in the order of their numbers.
std::vector<std::vector<int>> AssignLargestFirst(std::span<const double> times_s, int servers);

}  // namespace sap
