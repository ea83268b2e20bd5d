#include "solver/split/neighbours.h"

#include <algorithm>
#include <numeric>

namespace sap {
namespace {

// Trees whose part of the problem and of all workspaces is about 1 MiB, as much as the second-level
// cache of a core has: 20 to 320 take the same time, within 8 %.
constexpr int kMostTreesOfShard = 160;
// Work for 16 threads that end together; half as many where the scene is small.
constexpr int kShards = 64;

// From here on, about, several threads gain by sharing an island.
constexpr int kLargeTrees = 64;
constexpr int kLargeConstraints = 500;
constexpr double kLargeCubedDofs = 3e6;

constexpr int kLarge = -1;  // shard of large islands while the others are dealt

}  // namespace

bool Neighbours::Deal(const ProblemLayout& layout, const Islands& islands, int least_trees) {
  const int count = islands.count();
  CountByIsland(layout, islands, &constraints_of_island_);
  shard_of_island_.assign(count, 0);
  has_large_ = false;
  int trees = 0;  // in small islands
  for (int island = 0; island < count; ++island) {
    if (IsLarge(layout, islands, island)) {
      shard_of_island_[island] = kLarge;
      has_large_ = true;
    } else {
      trees += islands.first_slot()[island + 1] - islands.first_slot()[island];
    }
  }
  if (trees < least_trees) return false;
  DealInBlocks(islands, std::clamp(trees / kShards, 2 * least_trees / kShards, kMostTreesOfShard));
  constraints_.assign(count_, 0);
  for (int island = 0; island < count; ++island) {
    constraints_[shard_of_island_[island]] += constraints_of_island_[island];
  }
  order_.resize(count_);
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::sort(order_.begin() + (has_large_ ? 1 : 0), order_.end(), [this](int a, int b) {
    return constraints_[a] != constraints_[b] ? constraints_[a] > constraints_[b] : a < b;
  });
  constraints_after_.resize(count_);
  int64_t after = 0;
  for (int i = count_ - 1; i >= 0; --i) {
    constraints_after_[i] = after;
    after += constraints_[order_[i]];
  }
  return true;
}

void CountByIsland(const ProblemLayout& layout, const Islands& islands,
                   std::vector<int>* of_island) {
  const std::span<const int> island_of_tree = islands.island_of_tree();
  of_island->assign(islands.count(), 0);
  for (int contact = 0; contact < layout.num_contacts(); ++contact) {
    ++(*of_island)[island_of_tree[layout.contact_trees[layout.contact_start[contact]]]];
  }
  for (int row = 0; row < layout.num_rows(); ++row) {
    ++(*of_island)[island_of_tree[layout.row_entries[layout.row_start[row]].tree]];
  }
}

bool Neighbours::IsLarge(const ProblemLayout& layout, const Islands& islands, int island) const {
  const int begin = islands.first_slot()[island];
  const int end = islands.first_slot()[island + 1];
  if (end - begin >= kLargeTrees || constraints_of_island_[island] >= kLargeConstraints) {
    return true;
  }
  double cubed_dofs = 0;
  for (int slot = begin; slot < end; ++slot) {
    const double n = layout.dofs[islands.tree_of_slot()[slot]];
    cubed_dofs += n * n * n;
  }
  return cubed_dofs >= kLargeCubedDofs;
}

// Small islands in the order of their numbers, each shard of `trees_of_shard` trees or a few more.
void Neighbours::DealInBlocks(const Islands& islands, int trees_of_shard) {
  int shard = has_large_ ? 1 : 0;
  int in_shard = 0;
  for (int island = 0; island < islands.count(); ++island) {
    if (shard_of_island_[island] == kLarge) {
      shard_of_island_[island] = 0;
      continue;
    }
    if (in_shard >= trees_of_shard) {
      ++shard;
      in_shard = 0;
    }
    shard_of_island_[island] = shard;
    in_shard += islands.first_slot()[island + 1] - islands.first_slot()[island];
  }
  count_ = shard + 1;
}

}  // namespace sap
