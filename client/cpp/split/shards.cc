#include "client/cpp/split/shards.h"

#include <algorithm>
#include <cstdint>

namespace sap::client {
namespace {

// Selects rows `entries` of an array of `count` rows with so many values each. An array of
// another length is absent, or one that the solver does not read.
template <typename Value>
std::vector<Value> Pick(const std::vector<Value>& values, size_t count, int per_entry,
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
std::vector<Value> PickRanges(const std::vector<Value>& values, const std::vector<Start>& starts,
                              std::span<const int> entries) {
  std::vector<Value> picked;
  if (values.empty()) return picked;
  for (const int entry : entries) {
    picked.insert(picked.end(), values.begin() + starts[entry], values.begin() + starts[entry + 1]);
  }
  return picked;
}

// Contacts of one message, and those of them that have angular axes, numbered within the message.
struct ContactPick {
  size_t count;
  std::span<const int> contacts;
  size_t angular_count;
  std::span<const int> angular;
};

Problem::Law PickLaw(const Problem::Law& law, const ContactPick& pick) {
  const auto values = [&](const auto& array, int per_contact = 1) {
    return Pick(array, pick.count, per_contact, pick.contacts);
  };
  return {
      .signed_distance = values(law.signed_distance),
      .stiffness = values(law.stiffness),
      .relaxation_time = values(law.relaxation_time),
      .friction = values(law.friction),
      .regularization_t = values(law.regularization_t),
      .regularization_n = values(law.regularization_n),
      .delassus_estimate = values(law.delassus_estimate),
      .surface_velocity = values(law.surface_velocity, 3),
      .friction_2 = values(law.friction_2),
      .torsional_friction = values(law.torsional_friction),
      .rolling_friction = values(law.rolling_friction, 2),
      .target_velocity = values(law.target_velocity, 3),
      .target_angular_velocity =
          Pick(law.target_angular_velocity, pick.angular_count, 3, pick.angular),
      .adhesion = values(law.adhesion),
      .law = values(law.law),
      .hunt_crossley = {.elastic_force = values(law.hunt_crossley.elastic_force),
                        .dissipation = values(law.hunt_crossley.dissipation),
                        .lagged_normal_impulse = values(law.hunt_crossley.lagged_normal_impulse)}};
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

Shards::Shards(const Problem& problem, const ProblemLayout& layout,
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
    Shard& shard = shards_[shard_of_tree_[layout_.tree_a[contact]]];
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

Problem Shards::Extract(int number) const {
  const Shard& shard = shards_[number];
  const Halves trees = SplitAt(shard.trees, layout_.articulated_trees);
  const Halves contacts = SplitAt(shard.contacts, layout_.jacobian_contacts);
  return {.time_step = problem_.time_step,
          .trees = ExtractTrees(trees.low),
          .bodies = ExtractBodies(trees.high),
          .contacts = ExtractContacts(contacts.low),
          .body_contacts = ExtractBodyContacts(contacts.high, static_cast<int>(trees.low.size())),
          .rows = ExtractRows(shard.rows, shard.trees),
          .regularization = problem_.regularization};
}

Problem::Trees Shards::ExtractTrees(std::span<const int> trees) const {
  const Problem::Trees& whole = problem_.trees;
  const std::vector<int>& start = layout_.velocity_start;
  return {.dofs = Pick(whole.dofs, whole.dofs.size(), 1, trees),
          .dynamics_matrix = PickRanges(whole.dynamics_matrix, layout_.matrix_start, trees),
          .free_motion_velocity = PickRanges(whole.free_motion_velocity, start, trees),
          .guess_velocity = PickRanges(whole.guess_velocity, start, trees),
          .tree_id = Pick(whole.tree_id, whole.dofs.size(), 1, trees),
          .initial_velocity = PickRanges(whole.initial_velocity, start, trees)};
}

Problem::RigidBodies Shards::ExtractBodies(std::span<const int> bodies) const {
  const Problem::RigidBodies& whole = problem_.bodies;
  const auto values = [&](const auto& array, int per_body) {
    return Pick(array, whole.mass.size(), per_body, bodies);
  };
  return {.mass = values(whole.mass, 1),
          .inertia = values(whole.inertia, 6),
          .center_of_mass = values(whole.center_of_mass, 3),
          .free_motion_velocity = values(whole.free_motion_velocity, 6),
          .guess_velocity = values(whole.guess_velocity, 6),
          .body_id = values(whole.body_id, 1),
          .initial_velocity = values(whole.initial_velocity, 6)};
}

Problem::Contacts Shards::ExtractContacts(std::span<const int> contacts) const {
  const Problem::Contacts& whole = problem_.contacts;
  Problem::Contacts extracted;
  std::vector<int> angular;
  for (const int contact : contacts) {
    extracted.tree_a.push_back(PlaceOf(whole.tree_a[contact]));
    extracted.tree_b.push_back(PlaceOf(whole.tree_b[contact]));
    const int number = layout_.angular_number[contact];
    if (number >= 0) angular.push_back(number);
  }
  extracted.jacobian = PickRanges(whole.jacobian, layout_.jacobian_start, contacts);
  extracted.angular_jacobian = PickRanges(whole.angular_jacobian, layout_.angular_start, angular);
  const auto angular_count = static_cast<size_t>(layout_.jacobian_angular);
  extracted.law = PickLaw(whole.law, {.count = whole.tree_a.size(),
                                      .contacts = contacts,
                                      .angular_count = angular_count,
                                      .angular = angular});
  return extracted;
}

Problem::BodyContacts Shards::ExtractBodyContacts(std::span<const int> contacts,
                                                  int num_trees) const {
  const Problem::BodyContacts& whole = problem_.body_contacts;
  const auto place = [&](int body) {
    return body < 0 ? body : PlaceOf(layout_.articulated_trees + body) - num_trees;
  };
  Problem::BodyContacts extracted;
  std::vector<int> angular;
  for (const int contact : contacts) {
    extracted.body_a.push_back(place(whole.body_a[contact]));
    extracted.body_b.push_back(place(whole.body_b[contact]));
    const int number = layout_.angular_number[layout_.jacobian_contacts + contact];
    if (number >= 0) angular.push_back(number - layout_.jacobian_angular);
  }
  const auto values = [&](const std::vector<double>& array) {
    return Pick(array, whole.body_a.size(), 3, contacts);
  };
  extracted.point = values(whole.point);
  extracted.normal = values(whole.normal);
  extracted.tangent = values(whole.tangent);
  const auto angular_count = static_cast<size_t>(layout_.num_angular - layout_.jacobian_angular);
  extracted.law = PickLaw(whole.law, {.count = whole.body_a.size(),
                                      .contacts = contacts,
                                      .angular_count = angular_count,
                                      .angular = angular});
  return extracted;
}

Problem::Rows Shards::ExtractRows(std::span<const int> rows, std::span<const int> trees) const {
  const Problem::Rows& whole = problem_.rows;
  const auto values = [&](const auto& array) { return Pick(array, whole.entries.size(), 1, rows); };
  std::vector<uint32_t> start{0};  // of the velocities of each tree in this shard
  for (const int tree : trees) start.push_back(start.back() + layout_.dofs[tree]);
  Problem::Rows extracted{.entries = values(whole.entries),
                          .velocity_index = {},
                          .coefficient = PickRanges(whole.coefficient, layout_.row_start, rows),
                          .position_error = values(whole.position_error),
                          .velocity_offset = values(whole.velocity_offset),
                          .stiffness = values(whole.stiffness),
                          .relaxation_time = values(whole.relaxation_time),
                          .force_lower = values(whole.force_lower),
                          .force_upper = values(whole.force_upper),
                          .regularization = values(whole.regularization),
                          .target_velocity = values(whole.target_velocity),
                          .delassus_estimate = values(whole.delassus_estimate),
                          .slip_parameter = values(whole.slip_parameter),
                          .force_offset = values(whole.force_offset)};
  for (const int row : rows) {
    for (int64_t e = layout_.row_start[row]; e < layout_.row_start[row + 1]; ++e) {
      const RowEntry& entry = layout_.row_entries[e];
      extracted.velocity_index.push_back(start[PlaceOf(entry.tree)] + entry.dof);
    }
  }
  return extracted;
}

}  // namespace sap::client
