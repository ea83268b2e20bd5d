#include "solver/problem/contact_layout.h"

#include <algorithm>
#include <numeric>

#include "solver/problem/counting_sort.h"

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

}  // namespace

void ContactLayout::Build(const ContactProblem& problem, const Islands& islands,
                          std::span<const int> dofs, ConstraintKind kind, int num_rows) {
  pairs_.clear();
  jacobian_size_ = 0;
  OrderContacts(problem, islands, kind);
  if (order_.empty()) return;
  FindPairs(problem, islands, dofs, num_rows);
  ListSides(islands.num_slots());
  FindIslandRanges(islands);
}

// Those of the kind, by number.
void ContactLayout::FindContacts(const ContactProblem& problem, ConstraintKind kind) {
  order_.clear();
  if (problem.general_friction().empty() && problem.hunt_crossley().empty()) {
    if (kind != ConstraintKind::kFriction) return;
    order_.resize(problem.num_contacts());
    std::iota(order_.begin(), order_.end(), 0);
    return;
  }
  for (int contact = 0; contact < problem.num_contacts(); ++contact) {
    if (problem.contact_kind()[contact] == kind) order_.push_back(contact);
  }
}

// By the low slot, then by the high one, then by number: two counting sorts. Slots run island by
// island, so contacts do.
void ContactLayout::OrderContacts(const ContactProblem& problem, const Islands& islands,
                                  ConstraintKind kind) {
  FindContacts(problem, kind);
  if (order_.empty()) return;
  const std::span<const int> slot_of_tree = islands.slot_of_tree();
  const int slots = islands.num_slots();
  SortByKey(
      order_, slots + 1,
      [&](int contact) { return SlotsOf(problem, slot_of_tree, contact).high + 1; }, &count_,
      &half_sorted_);
  SortByKey(
      half_sorted_, slots, [&](int contact) { return SlotsOf(problem, slot_of_tree, contact).low; },
      &count_, &order_);
}

void ContactLayout::FindPairs(const ContactProblem& problem, const Islands& islands,
                              std::span<const int> dofs, int num_rows) {
  const std::span<const int> slot_of_tree = islands.slot_of_tree();
  swapped_.resize(order_.size());
  for (int i = 0; i < num_contacts(); ++i) {
    const int contact = order_[i];
    const auto [low, high] = SlotsOf(problem, slot_of_tree, contact);
    swapped_[i] = slot_of_tree[problem.tree_a()[contact]] != low;
    if (pairs_.empty() || pairs_.back().low != low || pairs_.back().high != high) {
      pairs_.push_back({low, high, i, i, dofs[low], high < 0 ? 0 : dofs[high], jacobian_size_});
    }
    ++pairs_.back().contact_end;
    jacobian_size_ += num_rows * (pairs_.back().dofs_low + pairs_.back().dofs_high);
  }
}

void ContactLayout::ListSides(int num_slots) {
  side_start_.assign(num_slots + 1, 0);
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

void ContactLayout::FindIslandRanges(const Islands& islands) {
  island_ranges_.resize(islands.count());
  const int num_pairs = static_cast<int>(pairs_.size());
  int pair = 0;
  int contact = 0;
  for (int i = 0; i < islands.count(); ++i) {
    ContactRange& range = island_ranges_[i];
    range.pair_begin = pair;
    range.contact_begin = contact;
    for (; pair < num_pairs && pairs_[pair].low < islands.first_slot()[i + 1]; ++pair) {
      contact = pairs_[pair].contact_end;
    }
    range.pair_end = pair;
    range.contact_end = contact;
  }
}

}  // namespace sap
