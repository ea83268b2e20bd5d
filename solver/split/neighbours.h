// How the islands of a large scene are dealt to the threads of one solver: neighbours together.
//
// A shard is read, laid out, solved and answered by one thread in a workspace of that thread, so
// its size is such that all of this stays in the cache of a core. Islands with work for several
// threads are one shard together, which is solved as a small scene is. A function of the problem,
// not of the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/parallel/storage_bytes.h"
#include "solver/problem/islands.h"
#include "solver/problem/problem_layout.h"

namespace sap {

// Contacts and rows of each island.
void CountByIsland(const ProblemLayout& layout, const Islands& islands,
                   std::vector<int>* of_island);

// Storage only grows.
class Neighbours {
 public:
  // Fewer trees in small islands are not worth it.
  static constexpr int kLeastTrees = 640;

  // False where there are fewer than `least_trees`. Then nothing is dealt.
  bool Deal(const ProblemLayout& layout, const Islands& islands, int least_trees = kLeastTrees);

  // Shards are numbered in the order of their lowest trees, but the one of large islands, which
  // comes first if there is any.
  int count() const { return count_; }
  bool has_large() const { return has_large_; }
  std::span<const int> shard_of_island() const { return shard_of_island_; }
  // In the order in which they are to be solved: the one with most work first.
  std::span<const int> order() const { return order_; }
  // Contacts and rows of the shards that come later in that order.
  int64_t constraints_after(int position) const { return constraints_after_[position]; }
  // Contacts and rows of a shard.
  int constraints(int shard) const { return constraints_[shard]; }

  size_t storage_bytes() const {
    return StorageBytes(shard_of_island_, constraints_of_island_, constraints_, order_,
                        constraints_after_);
  }

 private:
  bool IsLarge(const ProblemLayout& layout, const Islands& islands, int island) const;
  void DealInBlocks(const Islands& islands, int trees_of_shard);

  int count_{0};
  bool has_large_{false};
  std::vector<int> shard_of_island_;
  std::vector<int> constraints_of_island_;
  std::vector<int> constraints_;  // per shard
  std::vector<int> order_;
  std::vector<int64_t> constraints_after_;  // by position in the order
};

}  // namespace sap
