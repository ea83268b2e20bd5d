#include "solver/problem/problem_layout.h"

#include <algorithm>
#include <iterator>

#include "solver/problem/input_arrays.h"
#include "solver/problem/problem_reader.h"

namespace sap {

namespace {

constexpr int kBodyDofs = 6;

template <typename Value>
bool IsOfLength(std::span<const Value> array, int64_t length) {
  return static_cast<int64_t>(array.size()) == length;
}

template <typename Value>
bool IsEmptyOr(std::span<const Value> array, int64_t length) {
  return array.empty() || IsOfLength(array, length);
}

// Looks at all, without a branch for each.
bool AreWithin(std::span<const int32_t> indices, int lowest, int64_t end) {
  int32_t least = lowest, most = lowest;
  for (const int32_t i : indices) {
    least = std::min(least, i);
    most = std::max(most, i);
  }
  return indices.empty() || (least >= lowest && most < end);
}

// The arrays whose lengths follow from the counts alone.
bool HasLengthsOfCounts(const ContactProblemView& view) {
  const InputSizes sizes = SizesOfInputs(view);
  bool right = true;
  ForEachInput([&](const FieldName&, const std::span<const double>& array,
                   const int64_t& length) { right = right && IsEmptyOr(array, length); },
               view, sizes);
  return right;
}

// Guesses of impulses, of `angular` contacts with angular Jacobians.
bool HasLengthsOfGuesses(const ContactProblemView::Law& law, int64_t contacts, int64_t angular) {
  return IsEmptyOr(law.guess_impulse, 3 * contacts) &&
         IsEmptyOr(law.guess_angular_impulse, 3 * angular);
}

bool HasLengthsOfCoefficients(const ContactProblemView::Law& law, int64_t contacts) {
  return IsEmptyOr(law.torsional_friction, contacts) &&
         IsEmptyOr(law.rolling_friction, 2 * contacts) && IsEmptyOr(law.law, contacts);
}

}  // namespace

bool ProblemLayout::Read(const ContactProblemView& view) {
  const ProblemLimits limits;
  const int64_t contacts = CountContacts(view.contacts);
  const auto body_contacts = static_cast<int64_t>(view.body_contacts.body_a.size());
  if (contacts + body_contacts > limits.max_contacts) return false;
  // SizesOfInputs reads these.
  if (!HasLengthsOfCoefficients(view.contacts.law, contacts) ||
      !HasLengthsOfCoefficients(view.body_contacts.law, body_contacts)) {
    return false;
  }
  return HasLengthsOfCounts(view) && ReadTrees(view) && ReadCouplings(view.trees) &&
         ReadNames(view) && ReadContacts(view) && ReadBodyContacts(view) && ReadRows(view.rows);
}

bool ProblemLayout::ReadTrees(const ContactProblemView& view) {
  const ProblemLimits limits;
  const ContactProblemView::Trees& trees = view.trees;
  const ContactProblemView::RigidBodies& bodies = view.bodies;
  if (trees.dofs.size() + bodies.mass.size() > static_cast<size_t>(limits.max_trees)) return false;
  articulated_trees = static_cast<int>(trees.dofs.size());
  dofs.clear();
  velocity_start.assign(1, 0);
  matrix_start.assign(1, 0);
  for (const uint32_t n : trees.dofs) {
    if (n < 1 || n > static_cast<uint32_t>(limits.max_tree_dofs)) return false;
    dofs.push_back(static_cast<int>(n));
    velocity_start.push_back(velocity_start.back() + dofs.back());
    matrix_start.push_back(matrix_start.back() + static_cast<int64_t>(n) * n);
  }
  const int velocities = velocity_start.back();
  dofs.resize(trees.dofs.size() + bodies.mass.size(), kBodyDofs);
  for (size_t i = 0; i < bodies.mass.size(); ++i) {
    velocity_start.push_back(velocity_start.back() + kBodyDofs);
  }
  return IsOfLength(trees.dynamics_matrix, matrix_start.back()) &&
         IsOfLength(trees.free_motion_velocity, velocities) &&
         IsEmptyOr(trees.guess_velocity, velocities) &&
         IsEmptyOr(trees.initial_velocity, velocities) &&
         IsEmptyOr(trees.tree_id, articulated_trees) &&
         IsEmptyOr(bodies.guess_velocity, velocity_start.back() - velocities) &&
         IsEmptyOr(bodies.initial_velocity, velocity_start.back() - velocities) &&
         IsEmptyOr(bodies.body_id, static_cast<int64_t>(bodies.mass.size()));
}

bool ProblemLayout::ReadCouplings(const ContactProblemView::Trees& trees) {
  coupled.clear();
  coupling_block_size = 0;
  if (!IsOfLength(trees.coupled_b, static_cast<int64_t>(trees.coupled_a.size())) ||
      !AreWithin(trees.coupled_a, 0, articulated_trees) ||
      !AreWithin(trees.coupled_b, 0, articulated_trees)) {
    return false;
  }
  for (size_t k = 0; k < trees.coupled_a.size(); ++k) {
    const int a = trees.coupled_a[k];
    const int b = trees.coupled_b[k];
    coupled.push_back({a, b, coupling_block_size});
    coupling_block_size += static_cast<int64_t>(dofs[a]) * dofs[b];
  }
  return IsOfLength(trees.coupling_block, coupling_block_size);
}

// False where two names are equal.
bool ProblemLayout::ReadNames(const ContactProblemView& view) {
  name.clear();
  const auto append = [this](std::span<const uint32_t> names, size_t count) {
    if (names.empty()) {
      name.insert(name.end(), count, -1);
    } else {
      name.insert(name.end(), names.begin(), names.end());
    }
  };
  append(view.trees.tree_id, view.trees.dofs.size());
  append(view.bodies.body_id, view.bodies.mass.size());
  sorted_names_.clear();
  std::ranges::copy_if(name, std::back_inserter(sorted_names_), [](int64_t n) { return n >= 0; });
  if (!std::ranges::is_sorted(sorted_names_)) std::ranges::sort(sorted_names_);  // they mostly are
  return std::ranges::adjacent_find(sorted_names_) == sorted_names_.end();
}

bool ProblemLayout::ReadContacts(const ContactProblemView& view) {
  const ContactProblemView::Contacts& contacts = view.contacts;
  if (!ReadTreesOfContacts(contacts)) return false;
  const int64_t count = CountContacts(contacts);
  jacobian_contacts = static_cast<int>(count);
  jacobian_start.assign(1, 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t velocities = 0;
    for (int64_t t = contact_start[i]; t < contact_start[i + 1]; ++t) {
      velocities += dofs[contact_trees[t]];
    }
    jacobian_start.push_back(jacobian_start.back() + 3 * velocities);
  }
  num_angular = 0;
  angular_number.clear();
  NumberAngular(contacts.law, 0);
  jacobian_angular = num_angular;
  angular_start.assign(1, 0);
  for (int64_t i = 0; i < count; ++i) {
    if (angular_number[i] < 0) continue;
    angular_start.push_back(angular_start.back() + jacobian_start[i + 1] - jacobian_start[i]);
  }
  return IsOfLength(contacts.jacobian, jacobian_start.back()) &&
         IsOfLength(contacts.angular_jacobian, angular_start.back()) &&
         HasLengthsOfGuesses(contacts.law, count, jacobian_angular);
}

bool ProblemLayout::ReadTreesOfContacts(const ContactProblemView::Contacts& contacts) {
  contact_start.assign(1, 0);
  contact_trees.clear();
  const auto pairs = static_cast<int64_t>(contacts.tree_a.size());
  if (!IsOfLength(contacts.tree_b, pairs) || !AreWithin(contacts.tree_a, 0, num_trees()) ||
      !AreWithin(contacts.tree_b, -1, num_trees()) ||
      !AreWithin(contacts.part_tree, 0, num_trees())) {
    return false;
  }
  if (contacts.parts.empty()) {
    AppendContacts(contacts.tree_a, contacts.tree_b, 0);
    return contacts.part_tree.empty();
  }
  for (const uint32_t parts : contacts.parts) {
    if (parts < 1) return false;
    contact_start.push_back(contact_start.back() + parts);
  }
  contact_trees.assign(contacts.part_tree.begin(), contacts.part_tree.end());
  return pairs == 0 && IsOfLength(contacts.part_tree, contact_start.back());
}

// Appends contacts of one tree, where b is -1, or of two; trees are numbered from `first` on.
void ProblemLayout::AppendContacts(std::span<const int32_t> a, std::span<const int32_t> b,
                                   int first) {
  const size_t before = contact_start.size();
  auto next = static_cast<int64_t>(contact_trees.size());
  contact_start.resize(before + a.size());
  contact_trees.resize(next + 2 * a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    contact_trees[next++] = first + a[i];
    contact_trees[next] = first + b[i];
    next += b[i] >= 0 ? 1 : 0;
    contact_start[before + i] = next;
  }
  contact_trees.resize(next);
}

bool ProblemLayout::ReadBodyContacts(const ContactProblemView& view) {
  const ContactProblemView::BodyContacts& contacts = view.body_contacts;
  const auto count = static_cast<int64_t>(contacts.body_a.size());
  const auto bodies = static_cast<int64_t>(view.bodies.mass.size());
  if (!IsOfLength(contacts.body_b, count) || !AreWithin(contacts.body_a, 0, bodies) ||
      !AreWithin(contacts.body_b, -1, bodies)) {
    return false;
  }
  AppendContacts(contacts.body_a, contacts.body_b, articulated_trees);
  NumberAngular(contacts.law, jacobian_contacts);
  return HasLengthsOfGuesses(contacts.law, count, num_angular - jacobian_angular);
}

// Numbers the contacts from `first` on.
void ProblemLayout::NumberAngular(const ContactProblemView::Law& law, int64_t first) {
  const int64_t count = num_contacts() - first;
  if (law.torsional_friction.empty() && law.rolling_friction.empty()) {
    angular_number.resize(num_contacts(), -1);
    return;
  }
  const LawMessage message{{}, law, {count, {}}, 0, 0};
  for (int64_t i = 0; i < count; ++i) {
    angular_number.push_back(message.IsAngular(i) ? num_angular++ : -1);
  }
}

bool ProblemLayout::ReadRows(const ContactProblemView::Rows& rows) {
  row_start.assign(1, 0);
  row_entries.clear();
  for (const uint32_t entries : rows.entries) {
    if (entries < 1) return false;
    row_start.push_back(row_start.back() + entries);
  }
  if (!IsOfLength(rows.velocity_index, row_start.back()) ||
      !IsOfLength(rows.coefficient, row_start.back()) ||
      !IsEmptyOr(rows.guess_impulse, static_cast<int64_t>(rows.entries.size()))) {
    return false;
  }
  for (const uint32_t index : rows.velocity_index) {
    if (index >= static_cast<uint32_t>(velocity_start.back())) return false;
    const int velocity = static_cast<int>(index);
    const int tree = static_cast<int>(std::ranges::upper_bound(velocity_start, velocity) -
                                      velocity_start.begin()) -
                     1;
    row_entries.push_back({tree, velocity - velocity_start[tree]});
  }
  return true;
}

}  // namespace sap
