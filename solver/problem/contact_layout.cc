#include "solver/problem/contact_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "solver/problem/counting_sort.h"

namespace sap {

void ContactLayout::Build(const ContactProblem& problem, const Islands& islands,
                          std::span<const int> dofs, ConstraintKind kind, int num_rows) {
  groups_.clear();
  parts_.clear();
  couplings_.clear();
  jacobian_size_ = 0;
  OrderContacts(problem, islands, kind);
  if (order_.empty()) return;
  FindGroups(problem, islands, dofs, num_rows);
  ListCouplings(
      static_cast<int>(groups_.size()),
      [this](int g) {
        return IndexRange{groups_[g].part_begin, groups_[g].part_end};
      },
      [this](int part) { return parts_[part].slot; }, &couplings_);
  ListSides(islands.num_slots());
  FindIslandRanges(islands);
}

// Contacts of the kind, by number.
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

void ContactLayout::FindLowestSlots(const ContactProblem& problem,
                                    std::span<const int> slot_of_tree) {
  constexpr int kNone = std::numeric_limits<int>::max();
  lowest_slots_.resize(problem.num_contacts());
  for (const int contact : order_) {
    int lowest = kNone;
    int second = kNone;
    for (const int tree : problem.trees_of_contact(contact)) {
      const int slot = slot_of_tree[tree];
      second = std::min(second, std::max(lowest, slot));
      lowest = std::min(lowest, slot);
    }
    lowest_slots_[contact] = {lowest, second == kNone ? -1 : second};
  }
}

// By the lowest slot, then by the second, then by those that follow, then by number. Slots run
// island by island, so contacts do.
void ContactLayout::OrderContacts(const ContactProblem& problem, const Islands& islands,
                                  ConstraintKind kind) {
  FindContacts(problem, kind);
  if (order_.empty()) return;
  const std::span<const int> slot_of_tree = islands.slot_of_tree();
  const int slots = islands.num_slots();
  FindLowestSlots(problem, slot_of_tree);
  SortByKey(
      order_, slots + 1, [&](int contact) { return lowest_slots_[contact].second + 1; }, &count_,
      &half_sorted_);
  SortByKey(
      half_sorted_, slots, [&](int contact) { return lowest_slots_[contact].lowest; }, &count_,
      &order_);
  if (problem.most_trees_of_contact() > 2) OrderByFurtherTrees(problem, slot_of_tree);
}

void ContactLayout::OrderByFurtherTrees(const ContactProblem& problem,
                                        std::span<const int> slot_of_tree) {
  std::vector<int> slots, other_slots;
  const auto list = [&](int contact, std::vector<int>* to) {
    to->clear();
    for (const int tree : problem.trees_of_contact(contact)) to->push_back(slot_of_tree[tree]);
    std::ranges::sort(*to);
  };
  const auto is_before = [&](int contact, int other) {
    list(contact, &slots);
    list(other, &other_slots);
    return std::ranges::lexicographical_compare(slots, other_slots);
  };
  for (auto begin = order_.begin(); begin != order_.end();) {
    const SlotPair lowest = lowest_slots_[*begin];
    const auto end = std::find_if_not(
        begin, order_.end(), [&](int contact) { return lowest_slots_[contact] == lowest; });
    std::stable_sort(begin, end, is_before);
    begin = end;
  }
}

void ContactLayout::ListSources(const ContactProblem& problem, std::span<const int> slot_of_tree,
                                int contact) {
  const std::span<const int> trees = problem.trees_of_contact(contact);
  sources_.resize(trees.size());
  int column = 0;
  for (size_t i = 0; i < trees.size(); ++i) {
    sources_[i] = {slot_of_tree[trees[i]], column};
    column += problem.dofs()[trees[i]];
  }
  if (trees.size() > 2) {
    std::ranges::sort(sources_, {}, &Source::slot);
  } else if (trees.size() == 2 && sources_[1].slot < sources_[0].slot) {
    std::swap(sources_[0], sources_[1]);
  }
}

bool ContactLayout::HasTreesOfSources(const ContactGroup& group) const {
  return std::ranges::equal(parts_of(group), sources_, {}, &ContactPart::slot, &Source::slot);
}

void ContactLayout::FindGroups(const ContactProblem& problem, const Islands& islands,
                               std::span<const int> dofs, int num_rows) {
  source_columns_.resize(problem.contact_trees().size());  // of all kinds
  int64_t end = 0;
  for (int i = 0; i < num_contacts(); ++i) {
    ListSources(problem, islands.slot_of_tree(), order_[i]);
    if (groups_.empty() || !HasTreesOfSources(groups_.back())) StartGroup(dofs, i, end);
    ++groups_.back().contact_end;
    for (const Source& source : sources_) source_columns_[end++] = source.column;
    jacobian_size_ += num_rows * groups_.back().dofs;
  }
}

// The group of the trees of `sources_`, still without contacts.
void ContactLayout::StartGroup(std::span<const int> dofs, int contact, int64_t source) {
  const int part = static_cast<int>(parts_.size());
  int column = 0;
  for (const Source& s : sources_) {
    parts_.push_back({s.slot, dofs[s.slot], column});
    column += dofs[s.slot];
  }
  groups_.push_back(
      {part, static_cast<int>(parts_.size()), contact, contact, column, jacobian_size_, source});
}

void ContactLayout::ListSides(int num_slots) {
  side_start_.assign(num_slots + 1, 0);
  for (const ContactPart& part : parts_) ++side_start_[part.slot + 1];
  std::partial_sum(side_start_.begin(), side_start_.end(), side_start_.begin());
  sides_.resize(side_start_.back());
  count_.assign(side_start_.begin(), side_start_.end());
  for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
    for (int part = groups_[g].part_begin; part < groups_[g].part_end; ++part) {
      sides_[count_[parts_[part].slot]++] = {g, part};
    }
  }
}

void ContactLayout::FindIslandRanges(const Islands& islands) {
  island_ranges_.resize(islands.count());
  const int num_groups = static_cast<int>(groups_.size());
  const auto lowest_slot = [this](int g) { return parts_[groups_[g].part_begin].slot; };
  int group = 0;
  int contact = 0;
  for (int i = 0; i < islands.count(); ++i) {
    ContactRange& range = island_ranges_[i];
    range.group_begin = group;
    range.contact_begin = contact;
    for (; group < num_groups && lowest_slot(group) < islands.first_slot()[i + 1]; ++group) {
      contact = groups_[group].contact_end;
    }
    range.group_end = group;
    range.contact_end = contact;
  }
}

}  // namespace sap
