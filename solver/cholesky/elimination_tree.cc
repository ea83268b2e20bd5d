#include "solver/cholesky/elimination_tree.h"

#include <utility>

namespace sap {
namespace {

std::vector<int> InversePermutation(const std::vector<int>& order) {
  std::vector<int> position(order.size());
  for (int k = 0; k < static_cast<int>(order.size()); ++k) position[order[k]] = k;
  return position;
}

// ancestor[] is a shortcut towards the root of the part of the tree known so far.
std::vector<int> FindParents(const BlockGraph& graph, const std::vector<int>& order,
                             const std::vector<int>& position) {
  const int num_blocks = graph.num_blocks();
  std::vector<int> parent(num_blocks, -1);
  std::vector<int> ancestor(num_blocks, -1);
  for (int k = 0; k < num_blocks; ++k) {
    for (const int neighbor : graph.neighbors(order[k])) {
      int j = position[neighbor];
      while (j >= 0 && j < k) {
        const int next = ancestor[j];
        ancestor[j] = k;
        if (next < 0) parent[j] = k;
        j = next;
      }
    }
  }
  return parent;
}

// Row i of L is nonzero in a subtree with root i whose leaves are neighbors of i. The rows of i are
// added at its leaves, and subtracted at the least common ancestors of consecutive leaves and at
// the parent of i; sums up the tree then give the rows of each column.
std::vector<int> CountColumnRows(const BlockGraph& graph, const EliminationTree& tree) {
  const int num_blocks = graph.num_blocks();
  std::vector<int> rows(num_blocks, 0);
  std::vector<int> first_descendant(num_blocks, -1);
  std::vector<int> max_first(num_blocks, -1);
  std::vector<int> previous_leaf(num_blocks, -1);
  std::vector<int> ancestor(num_blocks);
  for (int j = 0; j < num_blocks; ++j) {
    ancestor[j] = j;
    if (first_descendant[j] < 0) {
      first_descendant[j] = j;
      rows[j] = graph.weight[tree.order[j]];
    }
    const int parent = tree.parent[j];
    if (parent >= 0 && first_descendant[parent] < 0) {
      first_descendant[parent] = first_descendant[j];
    }
  }
  for (int j = 0; j < num_blocks; ++j) {
    const int parent = tree.parent[j];
    if (parent >= 0) rows[parent] -= graph.weight[tree.order[j]];
    for (const int neighbor : graph.neighbors(tree.order[j])) {
      const int i = tree.position[neighbor];
      if (i <= j || first_descendant[j] <= max_first[i]) continue;  // not a leaf of row i
      max_first[i] = first_descendant[j];
      rows[j] += graph.weight[neighbor];
      int common = previous_leaf[i];
      previous_leaf[i] = j;
      if (common < 0) continue;
      while (common != ancestor[common]) {
        ancestor[common] = ancestor[ancestor[common]];
        common = ancestor[common];
      }
      rows[common] -= graph.weight[neighbor];
    }
    if (parent >= 0) ancestor[j] = parent;
  }
  for (int j = 0; j < num_blocks; ++j) {
    if (tree.parent[j] >= 0) rows[tree.parent[j]] += rows[j];
  }
  return rows;
}

}  // namespace

std::vector<int> Postorder(const std::vector<int>& parent) {
  const int count = static_cast<int>(parent.size());
  std::vector<int> first_child(count, -1);
  std::vector<int> next_sibling(count, -1);
  std::vector<int> stack;
  for (int i = count - 1; i >= 0; --i) {
    if (parent[i] < 0) continue;
    next_sibling[i] = first_child[parent[i]];
    first_child[parent[i]] = i;
  }
  std::vector<int> postorder;
  postorder.reserve(count);
  for (int root = 0; root < count; ++root) {
    if (parent[root] >= 0) continue;
    stack.push_back(root);
    while (!stack.empty()) {
      const int node = stack.back();
      const int child = first_child[node];
      if (child >= 0) {
        first_child[node] = next_sibling[child];
        stack.push_back(child);
      } else {
        stack.pop_back();
        postorder.push_back(node);
      }
    }
  }
  return postorder;
}

EliminationTree EliminationTree::Make(const BlockGraph& graph, std::vector<int> order) {
  const int num_blocks = graph.num_blocks();
  const std::vector<int> position = InversePermutation(order);
  const std::vector<int> parent = FindParents(graph, order, position);
  const std::vector<int> postorder = Postorder(parent);

  EliminationTree tree;
  tree.order.resize(num_blocks);
  for (int k = 0; k < num_blocks; ++k) tree.order[k] = order[postorder[k]];
  tree.position = InversePermutation(tree.order);
  tree.parent.resize(num_blocks);
  for (int k = 0; k < num_blocks; ++k) {
    const int old_parent = parent[postorder[k]];
    tree.parent[k] = old_parent < 0 ? -1 : tree.position[order[old_parent]];
  }
  tree.column_rows = CountColumnRows(graph, tree);
  return tree;
}

}  // namespace sap
