// Loops over the constraints of one tree, and sums over them.
//
// A tree that thousands of others touch, a table or a conveyor, would be one task in loops over
// trees and alone in its color of a sweep. Its pairs, or the parts of its rows, are cut into ranges
// that threads share; sums over ranges are added up in their order. What a tree has in one range is
// done by the calling thread, in one sum.
#pragma once

#include <algorithm>
#include <cstddef>

#include "solver/cholesky/dense_sizes.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/task_arena.h"
#include "solver/pools/loop_costs.h"

namespace sap {

// Calls body(sides) for ranges of what a tree has in a pool (SidesOf of its Jacobians).
template <typename Sides, typename Body>
inline void ForSides(TaskArena* arena, Sides sides, Body&& body) {
  const auto count = static_cast<int>(sides.size());
  if (count <= kHubSides.size) return body(sides);
  ForChunks(arena, 0, count, kHubSides,
            [&](int begin, int end, int) { body(sides.subspan(begin, end - begin)); });
}

// add(sides, sum) adds to sum[0, size). Sums of large trees are not cut: each range would need one.
template <typename Sides, typename Add>
inline void SumOverSides(TaskArena* arena, Sides sides, int size, double* sum, Add&& add) {
  constexpr int kLargestSum = kStackDofs * kStackDofs;
  const auto count = static_cast<int>(sides.size());
  if (count <= kHubSides.size || size > kLargestSum) return add(sides, sum);
  thread_local GrowingBuffer<double> kept;
  const int ranges = kHubSides.Count(0, count);
  double* partial = kept.Reserve(static_cast<size_t>(ranges) * size);
  ForChunks(arena, 0, count, kHubSides, [&](int begin, int end, int range) {
    double* part = partial + static_cast<ptrdiff_t>(range) * size;
    std::fill_n(part, size, 0.0);
    add(sides.subspan(begin, end - begin), part);
  });
  for (int range = 0; range < ranges; ++range) {
    const double* part = partial + static_cast<ptrdiff_t>(range) * size;
    for (int i = 0; i < size; ++i) sum[i] += part[i];
  }
}

template <typename Sides, typename Add>
inline void SumOverSides(OneChunk, Sides sides, int, double* sum, Add&& add) {
  add(sides, sum);
}

// f += J' gamma of one tree of n degrees of freedom, by the constraints of one pool.
template <typename Arena, typename Jacobians, typename Layout, typename Size, typename Vectors>
inline void AddTreeImpulse(Arena arena, const Jacobians& jacobians, const Layout& layout, int slot,
                           Size n, const Vectors& gamma, double* f) {
  SumOverSides(arena, Jacobians::SidesOf(layout, slot), n, f, [&](auto sides, double* sum) {
    jacobians.AddImpulse(layout, sides, n, gamma, sum);
  });
}

}  // namespace sap
