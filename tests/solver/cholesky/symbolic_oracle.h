// Symbolic factorization by elimination one row at a time: the oracle.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "solver/cholesky/block_graph.h"

namespace sap::test {

// True if order holds each of 0 .. n - 1 once.
inline bool IsPermutation(std::span<const int> order, int n) {
  if (static_cast<int>(order.size()) != n) return false;
  std::vector<bool> seen(n, false);
  for (const int i : order) {
    if (i < 0 || i >= n || seen[i]) return false;
    seen[i] = true;
  }
  return true;
}

// rows[k]: positions below k with a nonzero block in column k of L, by eliminating one by one.
inline std::vector<std::set<int>> EliminateNaively(const BlockGraph& graph,
                                                   const std::vector<int>& order) {
  std::vector<int> position(order.size());
  for (int k = 0; k < static_cast<int>(order.size()); ++k) position[order[k]] = k;
  std::vector<std::set<int>> rows(order.size());
  for (int k = 0; k < static_cast<int>(order.size()); ++k) {
    for (const int neighbor : graph.neighbors(order[k])) {
      if (position[neighbor] > k) rows[k].insert(position[neighbor]);
    }
  }
  for (const std::set<int>& column : rows) {
    if (column.empty()) continue;
    const int parent = *column.begin();
    rows[parent].insert(std::next(column.begin()), column.end());
  }
  return rows;
}

// Blocks of L below the diagonal.
inline size_t NumBlocksOfFactor(const BlockGraph& graph, const std::vector<int>& order) {
  size_t count = 0;
  for (const std::set<int>& column : EliminateNaively(graph, order)) count += column.size();
  return count;
}

}  // namespace sap::test
