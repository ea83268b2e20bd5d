#include "solver/problem/contact_graph.h"

#include <algorithm>
#include <numeric>

namespace sap {

namespace {

struct SlotPair {
  int low;
  int high;  // -1: none
};

SlotPair SlotsOf(const ContactProblem& problem, std::span<const int> slot_of_tree, int contact) {
  const int a = slot_of_tree[problem.tree_a()[contact]];
  const int tree_b = problem.tree_b()[contact];
  if (tree_b < 0) return {a, -1};
  const int b = slot_of_tree[tree_b];
  return {std::min(a, b), std::max(a, b)};
}

// Stable counting sort of `items` by key(item) in [0, num_keys).
template <typename Key>
void SortByKey(std::span<const int> items, int num_keys, Key&& key, std::vector<int>* count,
               std::vector<int>* sorted) {
  count->assign(num_keys + 1, 0);
  for (int item : items) ++(*count)[key(item) + 1];
  std::partial_sum(count->begin(), count->end(), count->begin());
  sorted->resize(items.size());
  for (int item : items) (*sorted)[(*count)[key(item)]++] = item;
}

}  // namespace

void ContactGraph::Build(const ContactProblem& problem, bool split_islands) {
  islands_.Find(problem, split_islands);
  const int slots = islands_.num_slots();
  dofs_.resize(slots);
  velocity_start_.assign(slots + 1, 0);
  matrix_start_.assign(slots + 1, 0);
  for (int slot = 0; slot < slots; ++slot) {
    const int n = problem.dofs()[islands_.tree_of_slot()[slot]];
    dofs_[slot] = n;
    velocity_start_[slot + 1] = velocity_start_[slot] + n;
    matrix_start_[slot + 1] = matrix_start_[slot] + static_cast<int64_t>(n) * n;
  }
  OrderContacts(problem);
  FindPairs(problem);
  ListSides();
  FindIslandRanges();
}

// By the low slot, then by the high one, then by number: two counting sorts. Slots run island by
// island, so contacts do.
void ContactGraph::OrderContacts(const ContactProblem& problem) {
  const std::span<const int> slot_of_tree = islands_.slot_of_tree();
  const int slots = islands_.num_slots();
  contact_order_.resize(problem.num_contacts());
  std::iota(contact_order_.begin(), contact_order_.end(), 0);
  SortByKey(
      contact_order_, slots + 1,
      [&](int contact) { return SlotsOf(problem, slot_of_tree, contact).high + 1; }, &count_,
      &half_sorted_);
  SortByKey(
      half_sorted_, slots, [&](int contact) { return SlotsOf(problem, slot_of_tree, contact).low; },
      &count_, &contact_order_);
}

void ContactGraph::FindPairs(const ContactProblem& problem) {
  const std::span<const int> slot_of_tree = islands_.slot_of_tree();
  pairs_.clear();
  swapped_.resize(contact_order_.size());
  jacobian_size_ = 0;
  block_size_ = 0;
  for (int i = 0; i < num_contacts(); ++i) {
    const int contact = contact_order_[i];
    const auto [low, high] = SlotsOf(problem, slot_of_tree, contact);
    swapped_[i] = slot_of_tree[problem.tree_a()[contact]] != low;
    if (pairs_.empty() || pairs_.back().low != low || pairs_.back().high != high) {
      const int dofs_high = high < 0 ? 0 : dofs_[high];
      pairs_.push_back({low, high, i, i, dofs_[low], dofs_high, jacobian_size_, block_size_});
      block_size_ += static_cast<int64_t>(dofs_[low]) * dofs_high;
    }
    ++pairs_.back().contact_end;
    jacobian_size_ += 3 * (pairs_.back().dofs_low + pairs_.back().dofs_high);
  }
}

void ContactGraph::ListSides() {
  side_start_.assign(num_slots() + 1, 0);
  for (const ContactPair& pair : pairs_) {
    ++side_start_[pair.low + 1];
    if (pair.high >= 0) ++side_start_[pair.high + 1];
  }
  std::partial_sum(side_start_.begin(), side_start_.end(), side_start_.begin());
  sides_.resize(side_start_.back());
  count_.assign(side_start_.begin(), side_start_.end());
  for (int i = 0; i < static_cast<int>(pairs_.size()); ++i) {
    sides_[count_[pairs_[i].low]++] = {i, false};
    if (pairs_[i].high >= 0) sides_[count_[pairs_[i].high]++] = {i, true};
  }
}

void ContactGraph::FindIslandRanges() {
  const std::span<const int> first_slot = islands_.first_slot();
  island_ranges_.resize(islands_.count());
  int pair = 0;
  int contact = 0;
  int64_t block = 0;
  const int num_pairs = static_cast<int>(pairs_.size());
  for (int i = 0; i < islands_.count(); ++i) {
    IslandRange& range = island_ranges_[i];
    range.slot_begin = first_slot[i];
    range.slot_end = first_slot[i + 1];
    range.velocity_begin = velocity_start_[range.slot_begin];
    range.velocity_end = velocity_start_[range.slot_end];
    range.matrix_begin = matrix_start_[range.slot_begin];
    range.matrix_end = matrix_start_[range.slot_end];
    range.pair_begin = pair;
    range.contact_begin = contact;
    range.block_begin = block;
    for (; pair < num_pairs && pairs_[pair].low < range.slot_end; ++pair) {
      contact = pairs_[pair].contact_end;
      block = pairs_[pair].block_start +
              static_cast<int64_t>(pairs_[pair].dofs_low) * pairs_[pair].dofs_high;
    }
    range.pair_end = pair;
    range.contact_end = contact;
    range.block_end = block;
    range.cubed_dofs = 0;
    for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
      range.cubed_dofs += static_cast<double>(dofs_[slot]) * dofs_[slot] * dofs_[slot];
    }
  }
}

}  // namespace sap
