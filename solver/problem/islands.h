// Islands: the exact connected components of the graph of trees, constraints and coupled trees.
//
// No constraint is ever cut, so every island is a problem of its own and the answers together are
// the answer of the whole. A contact or a row joins all trees that it names, and so does a block of
// A between two trees. The world joins nothing. A tree that nothing touches belongs to no island.
// Islands are numbered by their lowest tree, so numbers do not depend on the order of constraints
// or on threads.
#pragma once

#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/constraint_parameters.h"

namespace sap {

class ContactProblem;

// The trees that each contact, each row and each coupling of dynamics matrices touches.
struct JoinedTrees {
  int num_trees{0};
  std::span<const int64_t> contact_start{};  // [C + 1]
  std::span<const int> contact_trees{};
  std::span<const int64_t> row_start{};  // [R + 1]
  std::span<const RowEntry> row_entries{};
  std::span<const CoupledPair> coupled{};

  static JoinedTrees Of(const ContactProblem& problem);
};

// Storage only grows.
class Islands {
 public:
  // Finds the islands; with split = false all trees with constraints are put into one.
  void Find(const JoinedTrees& joined, bool split);
  void Find(const ContactProblem& problem, bool split) { Find(JoinedTrees::Of(problem), split); }

  int count() const { return static_cast<int>(first_slot_.size()) - 1; }
  // Island of each tree of the problem; -1: nothing touches it.
  std::span<const int> island_of_tree() const { return island_of_tree_; }

  // Trees of islands in the order of their islands, and of their numbers within; a place in
  // this order is a slot.
  int num_slots() const { return static_cast<int>(tree_of_slot_.size()); }
  std::span<const int> tree_of_slot() const { return tree_of_slot_; }
  std::span<const int> slot_of_tree() const { return slot_of_tree_; }  // [T], -1: no island
  std::span<const int> first_slot() const { return first_slot_; }      // [count + 1]
  size_t storage_bytes() const {
    return StorageBytes(parent_, island_of_tree_, tree_of_slot_, slot_of_tree_, first_slot_,
                        next_slot_);
  }

 private:
  int Root(int tree);

  std::vector<int> parent_;
  std::vector<int> island_of_tree_;
  std::vector<int> tree_of_slot_;
  std::vector<int> slot_of_tree_;
  std::vector<int> first_slot_{0};
  std::vector<int> next_slot_;
};

}  // namespace sap
