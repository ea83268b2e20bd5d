// The elimination tree of an ordered block graph: which block waits for which.
//
//   parent(j) = min { i > j : L_ij != 0 }
//
// Blocks are given by position in the order; the order is changed to a postorder of the tree (same
// fill, every subtree a contiguous range). Trees by path compression [Liu 1990]; sizes of columns
// without forming them [Gilbert, Ng and Peyton 1994].
#pragma once

#include <vector>

#include "solver/cholesky/block_graph.h"

namespace sap {

struct EliminationTree {
  std::vector<int> order;        // [N] block eliminated k-th, postordered
  std::vector<int> position;     // [N] inverse of order
  std::vector<int> parent;       // [N] position of the parent of position k; -1 for a root
  std::vector<int> column_rows;  // [N] rows of L in the columns of position k, its own included

  // Requires order to be a permutation of the blocks.
  static EliminationTree Make(const BlockGraph& graph, std::vector<int> order);
};

// The nodes of a forest with the children of each before it and its subtree contiguous, children
// in ascending order. parent[i] > i, or -1.
std::vector<int> Postorder(const std::vector<int>& parent);

}  // namespace sap
