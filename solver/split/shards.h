// The shards of a scene, which are solved apart: by the threads of one solver, or by servers. Whole
// islands, each shard a problem of its own.
//
// Within a shard everything keeps its order, so that its islands are solved with the bits that they
// have in the whole. Trees without constraints are spread over the shards, so that together the
// shards have all that the scene has.
#pragma once

#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/problem_fields.h"
#include "solver/problem/problem_layout.h"

namespace sap {

// Indices of the parts of the problem that form one shard, ascending.
struct Shard {
  std::span<const int> islands;
  std::span<const int> trees;     // trees, then bodies
  std::span<const int> contacts;  // contacts, then body contacts
  std::span<const int> angular;   // numbers of those of them that have angular axes, among all such
  std::span<const int> rows;
  std::span<const int> coupled;  // pairs of coupled trees
};

// A problem with its shards. Storage only grows.
class Shards {
 public:
  // No shards.
  Shards() = default;
  // `dealt`: the islands of each shard. Arrays, layout and islands must outlive this.
  Shards(const ContactProblemView& problem, const ProblemLayout& layout,
         std::span<const int> island_of_tree, const std::vector<std::vector<int>>& dealt);

  // The same by the shard of each island. `free_trees`: the shard of the trees without constraints;
  // kSpread: as many in each.
  static constexpr int kSpread = -1;
  void Build(const ContactProblemView& problem, const ProblemLayout& layout,
             std::span<const int> island_of_tree, std::span<const int> shard_of_island, int count,
             int free_trees = kSpread);

  const ProblemLayout& layout() const { return *layout_; }
  std::span<const int> island_of_tree() const { return island_of_tree_; }
  int count() const { return static_cast<int>(trees_.start.size()) - 1; }
  Shard shard(int i) const;

  // A shard as a problem. Thread-safe, as what follows.
  OwnedContactProblem Extract(int number) const;
  // The same, reusing storage.
  void Extract(int number, OwnedContactProblem* extracted) const;
  // The numbers of a shard among one for each velocity of the scene.
  void ExtractVelocities(int number, std::span<const double> scene,
                         std::vector<double>* extracted) const;

  // Sizes the answer of the scene for the shards to be put into it; its cost is 0.
  void Prepare(ContactSolution* scene) const;
  // Puts the answer to a shard to its place in that of the scene. Concurrent calls for different
  // shards write to different places.
  void Place(int number, const ContactSolution& solution, ContactSolution* scene) const;
  // The inverse: the answer to a shard out of that of the scene, except its sums.
  void Pick(int number, const ContactSolution& scene, ContactSolution* solution) const;

  size_t storage_bytes() const {
    return StorageBytes(shard_of_tree_, place_of_tree_, islands_, trees_, contacts_, angular_,
                        rows_, coupled_);
  }

 private:
  // Ascending numbers, shard by shard.
  struct Lists {
    std::vector<int> start{0};  // [shards + 1]
    std::vector<int> numbers;

    std::span<const int> of(int shard) const {
      return std::span(numbers).subspan(start[shard], start[shard + 1] - start[shard]);
    }
    size_t storage_bytes() const { return StorageBytes(start, numbers); }
  };
  // Lists the numbers in [0, size) by shard_of(number).
  template <typename ShardOf>
  static void List(int size, int shards, const ShardOf& shard_of, Lists* lists);

  void DealTrees(std::span<const int> shard_of_island, int count, int free_trees);
  void ListAngular(int count);
  int PlaceOf(int tree) const { return tree < 0 ? tree : place_of_tree_[tree]; }
  void ExtractCouplings(int number, OwnedContactProblem::Trees* extracted) const;
  void ExtractContacts(const Shard& part, OwnedContactProblem* extracted) const;
  void ExtractRows(const Shard& part, OwnedContactProblem::Rows* extracted) const;

  ContactProblemView problem_;
  const ProblemLayout* layout_{nullptr};
  std::span<const int> island_of_tree_;
  std::vector<int> shard_of_tree_;
  std::vector<int> place_of_tree_;  // among the trees of its shard
  Lists islands_, trees_, contacts_, angular_, rows_, coupled_;
};

}  // namespace sap
