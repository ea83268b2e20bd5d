// From the arrays of a shard to those of its scene.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sap {

// Copies blocks of `per_place` values, one after the other, to their places in the scene.
template <typename Value>
void PlaceBlocks(std::span<const Value> values, std::span<const int> places, int per_place,
                 std::vector<Value>* scene) {
  auto from = values.begin();
  for (const int place : places) {
    std::copy_n(from, per_place, scene->begin() + static_cast<int64_t>(place) * per_place);
    from += per_place;
  }
}

// The same where place i of the scene is [starts[i], starts[i + 1]).
template <typename Value>
void PlaceRanges(std::span<const Value> values, std::span<const int> places,
                 std::span<const int> starts, std::vector<Value>* scene) {
  auto from = values.begin();
  for (const int place : places) {
    const int count = starts[place + 1] - starts[place];
    std::copy_n(from, count, scene->begin() + starts[place]);
    from += count;
  }
}

}  // namespace sap
