#include "solver/split/shards.h"

#include <algorithm>
#include <cstdint>

namespace sap {
namespace {

// Selects rows `entries` of an array of `count` rows with `per_entry` values each. An array of
// another length is absent, or one that the solver does not read.
template <typename Value>
std::vector<Value> Pick(std::span<const Value> values, size_t count, int per_entry,
                        std::span<const int> entries) {
  std::vector<Value> picked;
  if (values.size() != count * per_entry) return picked;
  picked.reserve(entries.size() * per_entry);
  for (const int entry : entries) {
    const auto first = values.begin() + static_cast<int64_t>(entry) * per_entry;
    picked.insert(picked.end(), first, first + per_entry);
  }
  return picked;
}

// Selects `entries` of an array in which entry i is at [starts[i], starts[i + 1]).
template <typename Value, typename Start>
std::vector<Value> PickRanges(std::span<const Value> values, const std::vector<Start>& starts,
                              std::span<const int> entries) {
  std::vector<Value> picked;
  if (values.empty()) return picked;
  for (const int entry : entries) {
    picked.insert(picked.end(), values.begin() + starts[entry], values.begin() + starts[entry + 1]);
  }
  return picked;
}

// The entries of one group that are in a shard, and the contacts with angular axes among them, each
// numbered within the group.
struct Entries {
  size_t count;  // of the whole problem
  std::span<const int> picked;
  size_t angular_count{0};
  std::span<const int> angular{};
};

// Picks the arrays of a group, but not those of the groups within it.
template <typename View, typename Group>
void PickGroup(const ProblemLayout& layout, const Entries& entries, const View& whole,
               Group* shard) {
  const auto pick = [&](const auto& field, const auto& values) {
    switch (field.per) {
      case Per::kVelocity:
        return PickRanges(values, layout.velocity_start, entries.picked);
      case Per::kMatrix:
        return PickRanges(values, layout.matrix_start, entries.picked);
      case Per::kJacobian:
        return PickRanges(values, layout.jacobian_start, entries.picked);
      case Per::kAngularJacobian:
        return PickRanges(values, layout.angular_start, entries.angular);
      case Per::kTerm:
        return PickRanges(values, layout.row_start, entries.picked);
      case Per::kContactPart:
        return PickRanges(values, layout.contact_start, entries.picked);
      case Per::kCoupling:
      case Per::kCouplingBlock:
        return Pick(values, 0, field.columns, {});  // ExtractCouplings has them
      case Per::kAngularContact:
        return Pick(values, entries.angular_count, field.columns, entries.angular);
      case Per::kEntry:
        break;
    }
    return Pick(values, entries.count, field.columns, entries.picked);
  };
  Group::ForEach(
      [&](const auto& field, auto& picked, const auto& values) { picked = pick(field, values); },
      *shard, whole);
}

// Contacts of one kind: their numbers, and those of their angular axes, among all.
struct ContactRange {
  int first, count;
  int first_angular, angular_count;
};

template <typename View, typename Contacts>
void PickContacts(const ProblemLayout& layout, const ContactRange& range,
                  std::span<const int> picked, const View& whole, Contacts* shard) {
  std::vector<int> angular;
  for (const int contact : picked) {
    const int number = layout.angular_number[range.first + contact];
    if (number >= 0) angular.push_back(number - range.first_angular);
  }
  const Entries entries{static_cast<size_t>(range.count), picked,
                        static_cast<size_t>(range.angular_count), angular};
  PickGroup(layout, entries, whole, shard);
  PickGroup(layout, entries, whole.law, &shard->law);
  PickGroup(layout, entries, whole.law.hunt_crossley, &shard->law.hunt_crossley);
}

// Splits ascending numbers into those below `first` and the others, which count from there.
struct Halves {
  std::vector<int> low, high;
};

Halves SplitAt(std::span<const int> numbers, int first) {
  const auto middle = std::ranges::lower_bound(numbers, first);
  Halves halves{{numbers.begin(), middle}, {middle, numbers.end()}};
  for (int& number : halves.high) number -= first;
  return halves;
}

}  // namespace

Shards::Shards(const ContactProblemView& problem, const ProblemLayout& layout,
               std::span<const int> island_of_tree, const std::vector<std::vector<int>>& dealt)
    : problem_(problem), layout_(layout), island_of_tree_(island_of_tree), shards_(dealt.size()) {
  std::vector<int> shard_of_island(island_of_tree.size());  // at most one island per tree
  for (size_t shard = 0; shard < dealt.size(); ++shard) {
    shards_[shard].islands = dealt[shard];
    for (const int island : dealt[shard]) shard_of_island[island] = static_cast<int>(shard);
  }
  size_t next = 0;
  for (const int island : island_of_tree) {
    shard_of_tree_.push_back(island >= 0 ? shard_of_island[island]
                                         : static_cast<int>(next++ % dealt.size()));
  }
  ListTrees();
  ListContacts();
  ListRows();
}

void Shards::ListTrees() {
  for (int tree = 0; tree < layout_.num_trees(); ++tree) {
    Shard& shard = shards_[shard_of_tree_[tree]];
    place_of_tree_.push_back(static_cast<int>(shard.trees.size()));
    shard.trees.push_back(tree);
  }
}

void Shards::ListContacts() {
  for (int contact = 0; contact < layout_.num_contacts(); ++contact) {
    const int tree = layout_.contact_trees[layout_.contact_start[contact]];
    Shard& shard = shards_[shard_of_tree_[tree]];
    shard.contacts.push_back(contact);
    const int angular = layout_.angular_number[contact];
    if (angular >= 0) shard.angular.push_back(angular);
  }
}

void Shards::ListRows() {
  for (int row = 0; row < layout_.num_rows(); ++row) {
    const int tree = layout_.row_entries[layout_.row_start[row]].tree;
    shards_[shard_of_tree_[tree]].rows.push_back(row);
  }
}

OwnedContactProblem Shards::Extract(int number) const {
  const Shard& shard = shards_[number];
  const Halves trees = SplitAt(shard.trees, layout_.articulated_trees);
  const Halves contacts = SplitAt(shard.contacts, layout_.jacobian_contacts);
  OwnedContactProblem extracted;
  extracted.time_step = problem_.time_step;
  extracted.regularization = problem_.regularization;
  PickGroup(layout_, {problem_.trees.dofs.size(), trees.low}, problem_.trees, &extracted.trees);
  ExtractCouplings(number, &extracted.trees);
  PickGroup(layout_, {problem_.bodies.mass.size(), trees.high}, problem_.bodies, &extracted.bodies);
  ExtractContacts(contacts.low, &extracted.contacts);
  ExtractBodyContacts(contacts.high, static_cast<int>(trees.low.size()), &extracted.body_contacts);
  ExtractRows(shard.rows, shard.trees, &extracted.rows);
  return extracted;
}

// Coupled trees are in one island, so in one shard.
void Shards::ExtractCouplings(int number, OwnedContactProblem::Trees* extracted) const {
  const std::span<const double> blocks = problem_.trees.coupling_block;
  for (size_t k = 0; k < layout_.coupled.size(); ++k) {
    const auto& [a, b, start] = layout_.coupled[k];
    if (shard_of_tree_[a] != number) continue;
    extracted->coupled_a.push_back(PlaceOf(a));
    extracted->coupled_b.push_back(PlaceOf(b));
    const int64_t size = static_cast<int64_t>(layout_.dofs[a]) * layout_.dofs[b];
    extracted->coupling_block.insert(extracted->coupling_block.end(), blocks.begin() + start,
                                     blocks.begin() + start + size);
  }
}

void Shards::ExtractContacts(std::span<const int> contacts,
                             OwnedContactProblem::Contacts* extracted) const {
  PickContacts(layout_, {0, layout_.jacobian_contacts, 0, layout_.jacobian_angular}, contacts,
               problem_.contacts, extracted);
  for (int32_t& tree : extracted->tree_a) tree = PlaceOf(tree);
  for (int32_t& tree : extracted->tree_b) tree = PlaceOf(tree);
  for (int32_t& tree : extracted->part_tree) tree = PlaceOf(tree);
}

void Shards::ExtractBodyContacts(std::span<const int> contacts, int num_trees,
                                 OwnedContactProblem::BodyContacts* extracted) const {
  const int first = layout_.jacobian_contacts, first_angular = layout_.jacobian_angular;
  PickContacts(
      layout_,
      {first, layout_.num_contacts() - first, first_angular, layout_.num_angular - first_angular},
      contacts, problem_.body_contacts, extracted);
  for (auto* bodies : {&extracted->body_a, &extracted->body_b}) {
    for (int32_t& body : *bodies) {
      if (body >= 0) body = PlaceOf(layout_.articulated_trees + body) - num_trees;
    }
  }
}

void Shards::ExtractRows(std::span<const int> rows, std::span<const int> trees,
                         OwnedContactProblem::Rows* extracted) const {
  PickGroup(layout_, {problem_.rows.entries.size(), rows}, problem_.rows, extracted);
  std::vector<uint32_t> start{0};  // of the velocities of each tree in this shard
  for (const int tree : trees) start.push_back(start.back() + layout_.dofs[tree]);
  auto index = extracted->velocity_index.begin();
  for (const int row : rows) {
    for (int64_t e = layout_.row_start[row]; e < layout_.row_start[row + 1]; ++e) {
      const RowEntry& entry = layout_.row_entries[e];
      *index++ = start[PlaceOf(entry.tree)] + entry.dof;
    }
  }
}

}  // namespace sap
