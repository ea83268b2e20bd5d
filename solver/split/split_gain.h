// Predicted gain and cost of splitting a scene.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sap {

// Predicted time of a shard on a server with `threads` threads. Each island runs on one thread.
double TimeOnServer(std::span<const double> times_s, std::span<const int> islands, int threads);

// Additional time of several calls, compared with one call of the whole scene: a request and an
// answer per server, and the copies of the arrays into them and out of them.
double CostOfSplit(size_t problem_bytes);

// Whether the shards, solved at the same time on servers with `threads` threads each, save more
// than the split costs. `dealt`: the islands of each shard.
bool PaysOff(std::span<const double> times_s, const std::vector<std::vector<int>>& dealt,
             int threads, size_t problem_bytes);

}  // namespace sap
