// The elimination tree of an ordered block graph, and the sizes of the columns of its factor L:
//
//   parent(j) = min { i > j : L_ij != 0 }
//
// Blocks are named by their position in the order, which is changed to a postorder of the tree: the
// fill is the same and every subtree is a contiguous range. The tree is found by path compression
// [Liu 1990], the sizes of columns without forming them [Gilbert, Ng and Peyton 1994].
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

// The nodes of a forest in postorder: every subtree is contiguous and ends with its root; children
// are in ascending order. Requires parent[i] > i, or -1 for a root.
std::vector<int> Postorder(const std::vector<int>& parent);

}  // namespace sap
