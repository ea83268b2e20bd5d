#include "solver/problem/input_arrays.h"

#include "solver/problem/problem_reader.h"

namespace sap {

namespace {

// Length of an array that a rule replaces where it is absent.
int64_t IfGiven(std::span<const double> array, int64_t length) {
  return array.empty() ? 0 : length;
}

int64_t CountAngular(const ContactProblemView::Law& law, int64_t contacts) {
  const LawMessage message{{}, law, {contacts, {}}, 0, 0};
  int64_t count = 0;
  for (int64_t i = 0; i < contacts; ++i) count += message.IsAngular(i);
  return count;
}

InputSizes::Law SizesOfLaw(const ContactProblemView::Law& law, int64_t contacts) {
  InputSizes::Law sizes{};
  sizes.signed_distance = IfGiven(law.signed_distance, contacts);
  sizes.stiffness = IfGiven(law.stiffness, contacts);
  sizes.relaxation_time = contacts;
  sizes.friction = contacts;
  sizes.regularization_t = IfGiven(law.regularization_t, contacts);
  sizes.regularization_n = IfGiven(law.regularization_n, contacts);
  sizes.delassus_estimate = IfGiven(law.delassus_estimate, contacts);
  sizes.surface_velocity = 3 * contacts;
  sizes.friction_2 = IfGiven(law.friction_2, contacts);
  sizes.torsional_friction = contacts;
  sizes.rolling_friction = 2 * contacts;
  sizes.target_velocity = IfGiven(law.target_velocity, 3 * contacts);
  sizes.target_angular_velocity = 3 * CountAngular(law, contacts);
  sizes.adhesion = contacts;
  const ContactProblemView::HuntCrossley& h = law.hunt_crossley;
  sizes.hunt_crossley.elastic_force = IfGiven(h.elastic_force, contacts);
  sizes.hunt_crossley.dissipation = IfGiven(h.dissipation, contacts);
  sizes.hunt_crossley.lagged_normal_impulse = IfGiven(h.lagged_normal_impulse, contacts);
  return sizes;
}

InputSizes::Rows SizesOfRows(const ContactProblemView::Rows& rows) {
  const int64_t n = static_cast<int64_t>(rows.entries.size());
  InputSizes::Rows sizes{};
  sizes.coefficient = static_cast<int64_t>(rows.coefficient.size());
  sizes.position_error = rows.target_velocity.empty() ? n : IfGiven(rows.position_error, n);
  sizes.velocity_offset = n;
  sizes.stiffness = IfGiven(rows.stiffness, n);
  sizes.relaxation_time = n;
  sizes.force_lower = IfGiven(rows.force_lower, n);
  sizes.force_upper = IfGiven(rows.force_upper, n);
  sizes.regularization = IfGiven(rows.regularization, n);
  sizes.target_velocity = IfGiven(rows.target_velocity, n);
  sizes.delassus_estimate = IfGiven(rows.delassus_estimate, n);
  sizes.slip_parameter = IfGiven(rows.slip_parameter, n);
  sizes.force_offset = n;
  return sizes;
}

}  // namespace

InputSizes SizesOfInputs(const ContactProblemView& problem) {
  const int64_t bodies = static_cast<int64_t>(problem.bodies.mass.size());
  const int64_t contacts = static_cast<int64_t>(problem.contacts.tree_a.size());
  const int64_t body_contacts = static_cast<int64_t>(problem.body_contacts.body_a.size());
  InputSizes sizes{};
  sizes.trees.dynamics_matrix = static_cast<int64_t>(problem.trees.dynamics_matrix.size());
  sizes.trees.free_motion_velocity =
      static_cast<int64_t>(problem.trees.free_motion_velocity.size());
  sizes.bodies.mass = bodies;
  sizes.bodies.inertia = 6 * bodies;
  sizes.bodies.center_of_mass = 3 * bodies;
  sizes.bodies.free_motion_velocity = 6 * bodies;
  sizes.contacts.jacobian = static_cast<int64_t>(problem.contacts.jacobian.size());
  sizes.contacts.angular_jacobian = static_cast<int64_t>(problem.contacts.angular_jacobian.size());
  sizes.contacts.law = SizesOfLaw(problem.contacts.law, contacts);
  sizes.body_contacts.point = 3 * body_contacts;
  sizes.body_contacts.normal = 3 * body_contacts;
  sizes.body_contacts.tangent = IfGiven(problem.body_contacts.tangent, 3 * body_contacts);
  sizes.body_contacts.law = SizesOfLaw(problem.body_contacts.law, body_contacts);
  sizes.rows = SizesOfRows(problem.rows);
  return sizes;
}

}  // namespace sap
