// Supernodes: columns of the factor with equal or similar rows, factored together as one dense
// front.
//
// A front eliminates p rows ("pivots") and adds a dense update of r rows to its parent. Columns
// with equal structure form one front. A child is also merged into its parent where a cost model
// says that the explicit zeros cost less than a separate front. The model counts cycles; its
// constants were measured on a processor with two 256-bit multiply-add units, and the total cost
// changes little near their optimum.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/cholesky/elimination_tree.h"

namespace sap {

// Multiplications and additions to eliminate p pivots from p + r rows, one triangle only.
double FrontFlops(double pivots, double updates);

// A forest of supernodes in postorder, each a set of blocks eliminated one after another.
struct Supernodes {
  std::vector<int> order;        // [N] blocks in the order of elimination
  std::vector<int> block_start;  // [S + 1] supernode s eliminates order[block_start[s] .. [s + 1])
  std::vector<int> parent;       // [S] -1 for a root
  std::vector<int> pivots;       // [S] p, rows
  std::vector<int> updates;      // [S] r, rows
  std::vector<double> cost;      // [S] cycles, by the model
  // [S] whether it has a block that varies (BlockPattern), or one below it has. No other is merged
  // with one that does.
  std::vector<uint8_t> varies;

  int size() const { return static_cast<int>(parent.size()); }

  static Supernodes Make(const BlockGraph& graph, const EliminationTree& tree);
};

}  // namespace sap
