// Between the arrays of a shard and those of its scene. Neighbours are mostly next to each other in
// both, and are copied together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sap {

// Calls body(first, count) for each run of consecutive numbers.
template <typename Body>
void ForRuns(std::span<const int> numbers, Body&& body) {
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    body(numbers[begin], static_cast<int>(end - begin));
    begin = end;
  }
}

// Copies blocks of `per_place` values, one after the other, to their places in the scene.
template <typename Value>
void PlaceBlocks(std::span<const Value> values, std::span<const int> places, int per_place,
                 std::vector<Value>* scene) {
  auto from = values.begin();
  ForRuns(places, [&](int first, int count) {
    const int64_t size = static_cast<int64_t>(count) * per_place;
    std::copy_n(from, size, scene->begin() + static_cast<int64_t>(first) * per_place);
    from += size;
  });
}

// The same where place i of the scene is [starts[i], starts[i + 1]).
template <typename Value>
void PlaceRanges(std::span<const Value> values, std::span<const int> places,
                 std::span<const int> starts, std::vector<Value>* scene) {
  auto from = values.begin();
  ForRuns(places, [&](int first, int count) {
    const int size = starts[first + count] - starts[first];
    std::copy_n(from, size, scene->begin() + starts[first]);
    from += size;
  });
}

}  // namespace sap
