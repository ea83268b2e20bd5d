#include "client/cpp/problem.h"

#include <Eigen/Core>
#include <algorithm>
#include <map>

#include "solver/problem/rigid_bodies.h"

namespace sap::client {
namespace {

using Vector3 = std::array<double, 3>;

// Stands for a dof that its member does not have. No problem has that many velocities.
constexpr uint32_t kNoVelocity = std::numeric_limits<uint32_t>::max();

template <typename Array>
void Append(const Array& values, std::vector<double>* array) {
  array->insert(array->end(), values.begin(), values.end());
}

void Append(double value, std::vector<double>* array) { array->push_back(value); }

// One member of every item.
template <typename Item, typename Value>
std::vector<double> Values(const std::vector<Item>& items, Value Item::*member) {
  std::vector<double> values;
  for (const Item& item : items) Append(item.*member, &values);
  return values;
}

// The same; empty if every item has the default.
template <typename Item, typename Value>
std::vector<double> ValuesUnlessDefault(const std::vector<Item>& items, Value Item::*member) {
  const Value otherwise = Item().*member;
  const auto is_default = [&](const Item& item) { return item.*member == otherwise; };
  if (std::ranges::all_of(items, is_default)) return {};
  return Values(items, member);
}

// Whether any item has an optional member.
template <typename Item, typename Value>
bool AnyHas(const std::vector<Item>& items, std::optional<Value> Item::*member) {
  return std::ranges::any_of(items, [&](const Item& item) { return (item.*member).has_value(); });
}

bool HasAngularAxes(const ContactLaw& law) {
  return law.torsional_friction > 0 || law.rolling_friction[0] > 0 || law.rolling_friction[1] > 0;
}

// The wire has a target for all contacts or for none: contacts without one get (0, 0, -phi0 / (dt +
// tau_d)). Normals, in the axes of the targets, 3 per contact; empty: (0, 0, 1).
std::vector<double> TargetVelocities(const std::vector<ContactLaw>& laws, double time_step,
                                     std::span<const double> normals) {
  std::vector<double> targets;
  if (!AnyHas(laws, &ContactLaw::target_velocity)) return targets;
  for (size_t i = 0; i < laws.size(); ++i) {
    Vector3 normal{0, 0, 1};
    if (!normals.empty()) std::copy_n(normals.begin() + 3 * i, 3, normal.begin());
    const double v_hat = -laws[i].signed_distance / (time_step + laws[i].relaxation_time);
    const Vector3 by_distance{v_hat * normal[0], v_hat * normal[1], v_hat * normal[2]};
    Append(laws[i].target_velocity.value_or(by_distance), &targets);
  }
  return targets;
}

// One member of the contacts with angular Jacobians.
std::vector<double> AngularValues(std::vector<ContactLaw> laws, Vector3 ContactLaw::*member) {
  std::erase_if(laws, [](const ContactLaw& law) { return !HasAngularAxes(law); });
  return ValuesUnlessDefault(laws, member);
}

void AddHuntCrossley(const std::vector<ContactLaw>& laws, Problem::Law* arrays) {
  if (!AnyHas(laws, &ContactLaw::hunt_crossley)) return;
  std::vector<HuntCrossleyLaw> parameters;
  for (const ContactLaw& law : laws) {
    const HuntCrossleyLaw& given =
        parameters.emplace_back(law.hunt_crossley.value_or(HuntCrossleyLaw()));
    const auto kind = !law.hunt_crossley ? sap::ContactLaw::kSap
                      : given.friction == HuntCrossleyLaw::Friction::kLagged
                          ? sap::ContactLaw::kHuntCrossleyLagged
                          : sap::ContactLaw::kHuntCrossleySimilar;
    arrays->law.push_back(static_cast<int32_t>(kind));
  }
  arrays->hunt_crossley = {
      .elastic_force = Values(parameters, &HuntCrossleyLaw::elastic_force),
      .dissipation = Values(parameters, &HuntCrossleyLaw::dissipation),
      .lagged_normal_impulse = Values(parameters, &HuntCrossleyLaw::lagged_normal_impulse)};
}

Problem::Law LawArrays(const std::vector<ContactLaw>& laws, double time_step,
                       std::span<const double> normals) {
  Problem::Law arrays;
  arrays.signed_distance = Values(laws, &ContactLaw::signed_distance);
  arrays.stiffness = Values(laws, &ContactLaw::stiffness);
  arrays.relaxation_time = Values(laws, &ContactLaw::relaxation_time);
  arrays.friction = Values(laws, &ContactLaw::friction);
  arrays.surface_velocity = ValuesUnlessDefault(laws, &ContactLaw::surface_velocity);
  if (AnyHas(laws, &ContactLaw::friction_2)) {
    for (const ContactLaw& law : laws) {
      arrays.friction_2.push_back(law.friction_2.value_or(law.friction));
    }
  }
  arrays.torsional_friction = ValuesUnlessDefault(laws, &ContactLaw::torsional_friction);
  arrays.rolling_friction = ValuesUnlessDefault(laws, &ContactLaw::rolling_friction);
  arrays.target_velocity = TargetVelocities(laws, time_step, normals);
  arrays.target_angular_velocity = AngularValues(laws, &ContactLaw::target_angular_velocity);
  arrays.adhesion = ValuesUnlessDefault(laws, &ContactLaw::adhesion);
  AddHuntCrossley(laws, &arrays);
  arrays.guess_impulse = ValuesUnlessDefault(laws, &ContactLaw::guess_impulse);
  arrays.guess_angular_impulse = AngularValues(laws, &ContactLaw::guess_angular_impulse);
  return arrays;
}

// The wire has a tangent for all contacts or for none: contacts without one get the server's own.
std::vector<double> Tangents(const std::vector<std::optional<Vector3>>& given,
                             const std::vector<double>& normals) {
  std::vector<double> tangents;
  if (std::ranges::none_of(given, [](const auto& t1) { return t1.has_value(); })) return tangents;
  for (size_t i = 0; i < given.size(); ++i) {
    const Eigen::Map<const Eigen::Vector3d> normal(normals.data() + 3 * i);
    const Eigen::Vector3d t1 = ContactFrame(normal.normalized()).col(0);
    Append(given[i].value_or(Vector3{t1.x(), t1.y(), t1.z()}), &tangents);
  }
  return tangents;
}

// First velocity of each tree, then of each body, then the number of velocities.
std::vector<uint32_t> VelocityStarts(const Problem& problem) {
  std::vector<uint32_t> starts{0};
  for (const uint32_t dofs : problem.trees.dofs) starts.push_back(starts.back() + dofs);
  for (size_t i = 0; i < problem.bodies.mass.size(); ++i) starts.push_back(starts.back() + 6);
  return starts;
}

// Number of a member among trees, then bodies; -1: the world.
int Number(Member member, int num_trees) {
  return member.kind == Member::Kind::kBody ? num_trees + member.index : member.index;
}

// The terms sorted by velocity, with one entry per velocity.
void AppendEntries(const std::vector<RowTerm>& terms, std::span<const uint32_t> starts,
                   int num_trees, Problem::Rows* rows) {
  std::map<uint32_t, double> entries;
  for (const RowTerm& term : terms) {
    const int number = Number(term.member, num_trees);
    if (number < 0) continue;
    const bool exists = term.dof >= 0 && number + 1 < std::ssize(starts) &&
                        starts[number] + term.dof < starts[number + 1];
    entries[exists ? starts[number] + term.dof : kNoVelocity] += term.coefficient;
  }
  rows->entries.push_back(static_cast<uint32_t>(entries.size()));
  for (const auto& [index, coefficient] : entries) {
    rows->velocity_index.push_back(index);
    rows->coefficient.push_back(coefficient);
  }
}

void AddLaws(const std::vector<RowLaw>& laws, double time_step, Problem::Rows* rows) {
  rows->position_error = ValuesUnlessDefault(laws, &RowLaw::position_error);
  rows->velocity_offset = ValuesUnlessDefault(laws, &RowLaw::velocity_offset);
  rows->stiffness = ValuesUnlessDefault(laws, &RowLaw::stiffness);
  rows->relaxation_time = ValuesUnlessDefault(laws, &RowLaw::relaxation_time);
  rows->force_lower = ValuesUnlessDefault(laws, &RowLaw::force_lower);
  rows->force_upper = ValuesUnlessDefault(laws, &RowLaw::force_upper);
  rows->regularization = ValuesUnlessDefault(laws, &RowLaw::regularization);
  rows->delassus_estimate = ValuesUnlessDefault(laws, &RowLaw::delassus_estimate);
  rows->slip_parameter = ValuesUnlessDefault(laws, &RowLaw::slip_parameter);
  rows->force_offset = ValuesUnlessDefault(laws, &RowLaw::force_offset);
  rows->guess_impulse = ValuesUnlessDefault(laws, &RowLaw::guess_impulse);
  if (!AnyHas(laws, &RowLaw::target_velocity)) return;
  // As for contacts, the wire has a target for all rows or for none.
  for (const RowLaw& law : laws) {
    const double by_position = -law.position_error / (time_step + law.relaxation_time);
    rows->target_velocity.push_back(law.target_velocity.value_or(by_position));
  }
}

}  // namespace

ProblemBuilder::ProblemBuilder(double time_step) { problem_.time_step = time_step; }

Member ProblemBuilder::AddTree(std::span<const double> dynamics_matrix,
                               std::span<const double> free_motion_velocity) {
  Problem::Trees& trees = problem_.trees;
  trees.dofs.push_back(static_cast<uint32_t>(free_motion_velocity.size()));
  Append(dynamics_matrix, &trees.dynamics_matrix);
  Append(free_motion_velocity, &trees.free_motion_velocity);
  return {Member::Kind::kTree, static_cast<int>(trees.dofs.size()) - 1};
}

Member ProblemBuilder::AddBody(const RigidBody& body) {
  Problem::RigidBodies& bodies = problem_.bodies;
  bodies.mass.push_back(body.mass);
  Append(body.inertia, &bodies.inertia);
  Append(body.center_of_mass, &bodies.center_of_mass);
  Append(body.free_motion_velocity, &bodies.free_motion_velocity);
  return {Member::Kind::kBody, static_cast<int>(bodies.mass.size()) - 1};
}

void ProblemBuilder::AddContact(Member a, Member b, std::span<const double> jacobian_a,
                                std::span<const double> jacobian_b, const ContactLaw& law,
                                std::span<const double> angular_jacobian_a,
                                std::span<const double> angular_jacobian_b) {
  contact_members_.push_back({a, b});
  Append(jacobian_a, &problem_.contacts.jacobian);
  Append(jacobian_b, &problem_.contacts.jacobian);
  if (HasAngularAxes(law)) {
    Append(angular_jacobian_a, &problem_.contacts.angular_jacobian);
    Append(angular_jacobian_b, &problem_.contacts.angular_jacobian);
  }
  contact_laws_.push_back(law);
}

void ProblemBuilder::AddBodyContact(Member a, Member b, const std::array<double, 3>& point,
                                    const std::array<double, 3>& normal, const ContactLaw& law,
                                    const std::optional<std::array<double, 3>>& tangent) {
  Problem::BodyContacts& contacts = problem_.body_contacts;
  contacts.body_a.push_back(a.index);
  contacts.body_b.push_back(b.index);
  Append(point, &contacts.point);
  Append(normal, &contacts.normal);
  tangents_.push_back(tangent);
  body_contact_laws_.push_back(law);
}

void ProblemBuilder::AddRow(const std::vector<RowTerm>& terms, const RowLaw& law) {
  row_terms_.push_back(terms);
  row_laws_.push_back(law);
}

Problem ProblemBuilder::Build() const {
  Problem problem = problem_;
  const int num_trees = static_cast<int>(problem.trees.dofs.size());
  for (const auto& [a, b] : contact_members_) {
    problem.contacts.tree_a.push_back(Number(a, num_trees));
    problem.contacts.tree_b.push_back(Number(b, num_trees));
  }
  problem.contacts.law = LawArrays(contact_laws_, problem.time_step, {});
  problem.body_contacts.tangent = Tangents(tangents_, problem.body_contacts.normal);
  problem.body_contacts.law =
      LawArrays(body_contact_laws_, problem.time_step, problem.body_contacts.normal);
  const std::vector<uint32_t> starts = VelocityStarts(problem);
  for (const auto& terms : row_terms_) AppendEntries(terms, starts, num_trees, &problem.rows);
  AddLaws(row_laws_, problem.time_step, &problem.rows);
  return problem;
}

}  // namespace sap::client
