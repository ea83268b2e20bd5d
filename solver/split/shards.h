// The shards of a scene, which servers solve apart: whole islands, each shard a problem of its own.
//
// Within a shard everything keeps its order, so that its islands are solved with the bits that they
// have in the whole. Trees without constraints are spread over the shards, so that together the
// servers check all that one of them would.
#pragma once

#include <span>
#include <vector>

#include "solver/problem/problem_fields.h"
#include "solver/problem/problem_layout.h"

namespace sap {

// Indices of the parts of the problem that form one shard, ascending.
struct Shard {
  std::vector<int> islands;
  std::vector<int> trees;     // trees, then bodies
  std::vector<int> contacts;  // contacts, then body contacts
  std::vector<int> angular;   // numbers of those of them that have angular axes, among all such
  std::vector<int> rows;
};

// A problem with its shards.
class Shards {
 public:
  // `dealt`: the islands of each shard. Arrays, layout and islands must outlive this.
  Shards(const ContactProblemView& problem, const ProblemLayout& layout,
         std::span<const int> island_of_tree, const std::vector<std::vector<int>>& dealt);

  const ProblemLayout& layout() const { return layout_; }
  std::span<const int> island_of_tree() const { return island_of_tree_; }
  int count() const { return static_cast<int>(shards_.size()); }
  const Shard& shard(int i) const { return shards_[i]; }

  // A shard as a problem. Thread-safe.
  OwnedContactProblem Extract(int number) const;

 private:
  void ListTrees();
  void ListContacts();
  void ListRows();

  int PlaceOf(int tree) const { return tree < 0 ? tree : place_of_tree_[tree]; }
  void ExtractCouplings(int number, OwnedContactProblem::Trees* extracted) const;
  void ExtractContacts(std::span<const int> contacts,
                       OwnedContactProblem::Contacts* extracted) const;
  void ExtractBodyContacts(std::span<const int> contacts, int num_trees,
                           OwnedContactProblem::BodyContacts* extracted) const;
  void ExtractRows(std::span<const int> rows, std::span<const int> trees,
                   OwnedContactProblem::Rows* extracted) const;

  const ContactProblemView problem_;
  const ProblemLayout& layout_;
  const std::span<const int> island_of_tree_;
  std::vector<int> shard_of_tree_;
  std::vector<int> place_of_tree_;  // among the trees of its shard
  std::vector<Shard> shards_;
};

}  // namespace sap
