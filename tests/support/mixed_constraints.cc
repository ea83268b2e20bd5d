#include "tests/support/mixed_constraints.h"

#include "tests/support/message_fields.h"

namespace sap::test {

namespace {

void Fill(const std::string& path, int size, double value, v1::ContactProblem* problem) {
  Array<double>(path, problem).Resize(size, value);
}

int ContactsOf(const std::string& group, v1::ContactProblem* problem) {
  return Array<double>(group + ".friction", problem).size();
}

}  // namespace

void AddRows(v1::ContactProblem* problem) {
  v1::ConstraintRows* rows = problem->mutable_rows();
  for (const uint32_t entries : {2, 4, 1}) rows->add_entries(entries);
  for (const uint32_t index : {0, 3, /**/ 1, 4, 7, 12, /**/ 16}) rows->add_velocity_index(index);
  for (const double J : {1.0, -1.0, /**/ 0.5, -0.25, 1.0, -1.0, /**/ 2.0}) {
    rows->add_coefficient(J);
  }
}

void AddCoupling(v1::ContactProblem* problem) {
  v1::Trees* trees = problem->mutable_trees();
  trees->add_coupled_a(1);
  trees->add_coupled_b(0);
  Fill("trees.coupling_block", static_cast<int>(trees->dofs(0) * trees->dofs(1)), 0.01, problem);
}

void NameTreesByParts(v1::ContactProblem* problem) {
  v1::Contacts* contacts = problem->mutable_contacts();
  for (int i = 0; i < contacts->tree_a_size(); ++i) {
    const bool has_b = contacts->tree_b(i) >= 0;
    contacts->add_parts(has_b ? 2 : 1);
    contacts->add_part_tree(contacts->tree_a(i));
    if (has_b) contacts->add_part_tree(contacts->tree_b(i));
  }
  contacts->clear_tree_a();
  contacts->clear_tree_b();
}

void AddAngularFriction(const std::string& group, v1::ContactProblem* problem) {
  const int contacts = ContactsOf(group, problem);
  Fill(group + ".torsional_friction", contacts, 0.01, problem);
  Fill(group + ".rolling_friction", 2 * contacts, 0.02, problem);
  Fill(group + ".target_angular_velocity", 3 * contacts, 0.03, problem);
  if (group == "contacts") {
    const int size = problem->contacts().jacobian_size();
    Fill("contacts.angular_jacobian", size, 0.04, problem);
  }
}

void AddTangents(v1::ContactProblem* problem) {
  // Both normals are orthogonal to y.
  for (int i = 0; i < problem->body_contacts().body_a_size(); ++i) {
    for (const double t : {0.0, 1.0, 0.0}) problem->mutable_body_contacts()->add_tangent(t);
  }
}

void MakeHuntCrossley(const std::string& group, v1::ContactProblem* problem) {
  const int contacts = ContactsOf(group, problem);
  Array<int32_t>(group + ".law", problem).Resize(contacts, v1::CONTACT_LAW_HUNT_CROSSLEY_LAGGED);
  Fill(group + ".hunt_crossley.elastic_force", contacts, 100.0, problem);
  Fill(group + ".hunt_crossley.dissipation", contacts, 0.5, problem);
  Fill(group + ".hunt_crossley.lagged_normal_impulse", contacts, 1.0, problem);
}

}  // namespace sap::test
