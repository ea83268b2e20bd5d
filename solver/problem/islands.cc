#include "solver/problem/islands.h"

#include <algorithm>
#include <numeric>

#include "solver/problem/contact_problem.h"

namespace sap {

JoinedTrees JoinedTrees::Of(const ContactProblem& problem) {
  return {problem.num_trees(), problem.contact_start(), problem.contact_trees(),
          problem.row_start(), problem.row_entries(),   problem.coupled_trees().pairs()};
}

int Islands::Root(int tree) {
  int* const parent = parent_.data();
  while (parent[tree] != tree) tree = parent[tree] = parent[parent[tree]];
  return tree;
}

void Islands::Find(const JoinedTrees& joined, bool split) {
  const auto& [num_trees, contact_start, contact_trees, row_start, row_entries, coupled] = joined;
  parent_.resize(num_trees);
  std::iota(parent_.begin(), parent_.end(), 0);
  island_of_tree_.assign(num_trees, -1);

  // A root is the lowest tree of its component. Trees of islands are marked by 0.
  const auto join = [&](int tree, int other) {
    const int a = Root(tree);
    const int b = Root(other);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  };
  for (size_t contact = 0; contact + 1 < contact_start.size(); ++contact) {
    const int first = contact_trees[contact_start[contact]];
    island_of_tree_[first] = 0;
    for (int64_t i = contact_start[contact] + 1; i < contact_start[contact + 1]; ++i) {
      island_of_tree_[contact_trees[i]] = 0;
      if (split) join(first, contact_trees[i]);
    }
  }
  for (size_t row = 0; row + 1 < row_start.size(); ++row) {
    const int first = row_entries[row_start[row]].tree;
    int last = -1;
    for (int64_t e = row_start[row]; e < row_start[row + 1]; ++e) {
      const int tree = row_entries[e].tree;
      if (tree == last) continue;
      last = tree;
      island_of_tree_[tree] = 0;
      if (split) join(first, tree);
    }
  }
  for (const CoupledPair& pair : coupled) {
    island_of_tree_[pair.a] = island_of_tree_[pair.b] = 0;
    if (split) join(pair.a, pair.b);
  }

  first_slot_.assign(1, 0);
  for (int tree = 0; tree < num_trees; ++tree) {
    if (island_of_tree_[tree] < 0) continue;
    const int root = Root(tree);
    if (split && root != tree) {
      island_of_tree_[tree] = island_of_tree_[root];
    } else if (split || first_slot_.size() == 1) {
      island_of_tree_[tree] = count();
      first_slot_.push_back(0);
    }
    ++first_slot_[island_of_tree_[tree] + 1];
  }
  std::partial_sum(first_slot_.begin(), first_slot_.end(), first_slot_.begin());

  tree_of_slot_.resize(first_slot_.back());
  slot_of_tree_.assign(num_trees, -1);
  next_slot_.assign(first_slot_.begin(), first_slot_.end());
  for (int tree = 0; tree < num_trees; ++tree) {
    if (island_of_tree_[tree] < 0) continue;
    const int slot = next_slot_[island_of_tree_[tree]]++;
    tree_of_slot_[slot] = tree;
    slot_of_tree_[tree] = slot;
  }
}

}  // namespace sap
