#include "client/cpp/transport/problem_view.h"

namespace sap::client {
namespace {

ContactProblemView::Law ViewOf(const Problem::Law& law) {
  return {.signed_distance = law.signed_distance,
          .stiffness = law.stiffness,
          .relaxation_time = law.relaxation_time,
          .friction = law.friction,
          .regularization_t = law.regularization_t,
          .regularization_n = law.regularization_n,
          .delassus_estimate = law.delassus_estimate,
          .surface_velocity = law.surface_velocity,
          .friction_2 = law.friction_2,
          .torsional_friction = law.torsional_friction,
          .rolling_friction = law.rolling_friction,
          .target_velocity = law.target_velocity,
          .target_angular_velocity = law.target_angular_velocity,
          .adhesion = law.adhesion,
          .law = law.law,
          .hunt_crossley = {.elastic_force = law.hunt_crossley.elastic_force,
                            .dissipation = law.hunt_crossley.dissipation,
                            .lagged_normal_impulse = law.hunt_crossley.lagged_normal_impulse}};
}

ContactProblemView::Rows ViewOf(const Problem::Rows& rows) {
  return {.entries = rows.entries,
          .velocity_index = rows.velocity_index,
          .coefficient = rows.coefficient,
          .position_error = rows.position_error,
          .velocity_offset = rows.velocity_offset,
          .stiffness = rows.stiffness,
          .relaxation_time = rows.relaxation_time,
          .force_lower = rows.force_lower,
          .force_upper = rows.force_upper,
          .regularization = rows.regularization,
          .target_velocity = rows.target_velocity,
          .delassus_estimate = rows.delassus_estimate,
          .slip_parameter = rows.slip_parameter,
          .force_offset = rows.force_offset};
}

}  // namespace

ContactProblemView ViewOf(const Problem& problem) {
  const auto& [time_step, trees, bodies, contacts, body_contacts, rows, regularization] = problem;
  return {.time_step = time_step,
          .trees = {.dofs = trees.dofs,
                    .dynamics_matrix = trees.dynamics_matrix,
                    .free_motion_velocity = trees.free_motion_velocity,
                    .guess_velocity = trees.guess_velocity,
                    .tree_id = trees.tree_id,
                    .initial_velocity = trees.initial_velocity},
          .bodies = {.mass = bodies.mass,
                     .inertia = bodies.inertia,
                     .center_of_mass = bodies.center_of_mass,
                     .free_motion_velocity = bodies.free_motion_velocity,
                     .guess_velocity = bodies.guess_velocity,
                     .body_id = bodies.body_id,
                     .initial_velocity = bodies.initial_velocity},
          .contacts = {.tree_a = contacts.tree_a,
                       .tree_b = contacts.tree_b,
                       .jacobian = contacts.jacobian,
                       .angular_jacobian = contacts.angular_jacobian,
                       .law = ViewOf(contacts.law)},
          .body_contacts = {.body_a = body_contacts.body_a,
                            .body_b = body_contacts.body_b,
                            .point = body_contacts.point,
                            .normal = body_contacts.normal,
                            .tangent = body_contacts.tangent,
                            .law = ViewOf(body_contacts.law)},
          .rows = ViewOf(rows),
          .regularization = regularization};
}

}  // namespace sap::client
