#include "client/cpp/problem.h"

namespace sap::client {
namespace {

template <typename Values>
void Append(const Values& values, std::vector<double>* array) {
  array->insert(array->end(), values.begin(), values.end());
}

void AppendLaw(const ContactLaw& law, Problem::Law* arrays) {
  arrays->signed_distance.push_back(law.signed_distance);
  arrays->stiffness.push_back(law.stiffness);
  arrays->relaxation_time.push_back(law.relaxation_time);
  arrays->friction.push_back(law.friction);
  Append(law.surface_velocity, &arrays->surface_velocity);
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
                                std::span<const double> jacobian_b, const ContactLaw& law) {
  contact_members_.push_back({a, b});
  Append(jacobian_a, &problem_.contacts.jacobian);
  Append(jacobian_b, &problem_.contacts.jacobian);
  AppendLaw(law, &problem_.contacts.law);
}

void ProblemBuilder::AddBodyContact(Member a, Member b, const std::array<double, 3>& point,
                                    const std::array<double, 3>& normal, const ContactLaw& law) {
  Problem::BodyContacts& contacts = problem_.body_contacts;
  contacts.body_a.push_back(a.index);
  contacts.body_b.push_back(b.index);
  Append(point, &contacts.point);
  Append(normal, &contacts.normal);
  AppendLaw(law, &contacts.law);
}

Problem ProblemBuilder::Build() const {
  Problem problem = problem_;
  const int num_trees = static_cast<int>(problem.trees.dofs.size());
  const auto number = [num_trees](Member member) {
    return member.kind == Member::Kind::kBody ? num_trees + member.index : member.index;
  };
  for (const auto& [a, b] : contact_members_) {
    problem.contacts.tree_a.push_back(number(a));
    problem.contacts.tree_b.push_back(number(b));
  }
  return problem;
}

}  // namespace sap::client
