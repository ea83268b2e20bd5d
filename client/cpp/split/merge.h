// The solution of a scene from those of its shards, with the bits of the undivided one.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/error.h"
#include "client/cpp/solution.h"
#include "solver/split/shards.h"

namespace sap::client {

// Whether a response mask selects the field.
inline bool Wants(const std::vector<std::string>& mask, const char* field) {
  return mask.empty() || std::ranges::find(mask, field) != mask.end();
}

// The response mask of the shards: costs are summed by island, and the islands of each tree known.
std::vector<std::string> MaskOfShards(const std::vector<std::string>& response_mask);

// `solutions` are those of the shards, with the fields of MaskOfShards. Each phase takes as long as
// in the slowest shard. An error if a solution does not fit its shard.
tl::expected<Solution, Error> Merge(const Shards& shards, std::span<const Solution> solutions,
                                    const std::vector<std::string>& response_mask);

}  // namespace sap::client
