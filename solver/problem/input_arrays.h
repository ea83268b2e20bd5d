// The inputs of a problem: its arrays of doubles by their wire names, and which of them have a
// derivative.
//
// An array has one where the problem gives it, or where it is absent and stands for a number:
// surface_velocity 0, say. It has none where it is absent and a rule takes its place: friction_2,
// tangent, R, w, v_hat, and the stiffness and bounds of rows, which are then infinite. Guesses have
// none. Entries that the problem has but does not read (stiffness where regularization_n is given,
// a material of Hunt & Crossley under another law) have the derivative 0, as have infinite entries
// and, in arrays of rows where 0 stands for a rule, entries of 0.
#pragma once

#include "solver/problem/contact_problem.h"
#include "solver/problem/input_checker.h"

namespace sap {

// A number in the place of each array.
template <typename Value>
using Count = int64_t;
using InputSizes = ContactProblemArrays<Count>;

// How many numbers the derivative with respect to each array has; 0 where there is none. The
// problem has been read. Its scalars and index arrays are not set.
InputSizes SizesOfInputs(const ContactProblemView& problem);

// visit(name, law.array...) for each array of doubles of laws of contacts in the group "contacts."
// or "body_contacts.".
template <typename Visit, typename... Laws>
void ForEachLawInput(std::string_view group, const Visit& visit, Laws&... law) {
  const auto name = [group](std::string_view array) { return FieldName(group, array); };
  visit(name("signed_distance"), law.signed_distance...);
  visit(name("stiffness"), law.stiffness...);
  visit(name("relaxation_time"), law.relaxation_time...);
  visit(name("friction"), law.friction...);
  visit(name("regularization_t"), law.regularization_t...);
  visit(name("regularization_n"), law.regularization_n...);
  visit(name("delassus_estimate"), law.delassus_estimate...);
  visit(name("surface_velocity"), law.surface_velocity...);
  visit(name("friction_2"), law.friction_2...);
  visit(name("torsional_friction"), law.torsional_friction...);
  visit(name("rolling_friction"), law.rolling_friction...);
  visit(name("target_velocity"), law.target_velocity...);
  visit(name("target_angular_velocity"), law.target_angular_velocity...);
  visit(name("adhesion"), law.adhesion...);
  visit(name("hunt_crossley.elastic_force"), law.hunt_crossley.elastic_force...);
  visit(name("hunt_crossley.dissipation"), law.hunt_crossley.dissipation...);
  visit(name("hunt_crossley.lagged_normal_impulse"), law.hunt_crossley.lagged_normal_impulse...);
}

// visit(name, arrays.array...) for each array of doubles but guesses; `arrays` are any instances of
// ContactProblemArrays. Scalars are not visited.
template <typename Visit, typename... Arrays>
void ForEachInput(const Visit& visit, Arrays&... arrays) {
  visit("trees.dynamics_matrix", arrays.trees.dynamics_matrix...);
  visit("trees.free_motion_velocity", arrays.trees.free_motion_velocity...);
  visit("bodies.mass", arrays.bodies.mass...);
  visit("bodies.inertia", arrays.bodies.inertia...);
  visit("bodies.center_of_mass", arrays.bodies.center_of_mass...);
  visit("bodies.free_motion_velocity", arrays.bodies.free_motion_velocity...);
  visit("contacts.jacobian", arrays.contacts.jacobian...);
  visit("contacts.angular_jacobian", arrays.contacts.angular_jacobian...);
  ForEachLawInput("contacts.", visit, arrays.contacts.law...);
  visit("body_contacts.point", arrays.body_contacts.point...);
  visit("body_contacts.normal", arrays.body_contacts.normal...);
  visit("body_contacts.tangent", arrays.body_contacts.tangent...);
  ForEachLawInput("body_contacts.", visit, arrays.body_contacts.law...);
  visit("rows.coefficient", arrays.rows.coefficient...);
  visit("rows.position_error", arrays.rows.position_error...);
  visit("rows.velocity_offset", arrays.rows.velocity_offset...);
  visit("rows.stiffness", arrays.rows.stiffness...);
  visit("rows.relaxation_time", arrays.rows.relaxation_time...);
  visit("rows.force_lower", arrays.rows.force_lower...);
  visit("rows.force_upper", arrays.rows.force_upper...);
  visit("rows.regularization", arrays.rows.regularization...);
  visit("rows.target_velocity", arrays.rows.target_velocity...);
  visit("rows.delassus_estimate", arrays.rows.delassus_estimate...);
  visit("rows.slip_parameter", arrays.rows.slip_parameter...);
  visit("rows.force_offset", arrays.rows.force_offset...);
}

}  // namespace sap
