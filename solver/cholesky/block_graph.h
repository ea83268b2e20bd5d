// The pattern of a symmetric block matrix, and its adjacency graph.
//
// One node per diagonal block (a tree of an island), one edge per nonzero block below the diagonal
// (two trees with a constraint in common). Orderings and the symbolic analysis depend on this graph
// alone, not on the values of the matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sap {

struct BlockPattern {
  std::span<const int> block_size;  // [N] rows of each diagonal block, >= 1
  std::span<const int> edge_a;      // [E] each unordered pair of different blocks once,
  std::span<const int> edge_b;      // [E] in either order
  // [N] whether the rows of each block change from one factorization to the next; empty: all do.
  // Two blocks that do not change have a block between them that does not.
  std::span<const uint8_t> varies{};

  int num_blocks() const { return static_cast<int>(block_size.size()); }
  int num_edges() const { return static_cast<int>(edge_a.size()); }
};

// The neighbors of block i are neighbor[start[i] .. start[i + 1]), in ascending order.
struct BlockGraph {
  std::vector<int> weight;      // [N] rows of each block
  std::vector<int> start;       // [N + 1]
  std::vector<int> neighbor;    // [2 E]
  std::vector<int> edge;        // [2 E] index of the edge to that neighbor in the pattern
  std::vector<uint8_t> varies;  // [N] as in the pattern, or empty

  static BlockGraph FromPattern(const BlockPattern& pattern);

  int num_blocks() const { return static_cast<int>(weight.size()); }
  int degree(int i) const { return start[i + 1] - start[i]; }
  std::span<const int> neighbors(int i) const {
    return std::span<const int>(neighbor).subspan(start[i], degree(i));
  }
};

}  // namespace sap
