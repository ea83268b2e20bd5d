// The problem of one step of a simulation, as the solver takes it, without a guess.
#pragma once

#include "client/cpp/problem.h"
#include "solver/problem/contact_problem.h"

namespace sap::bench {

inline ContactProblemView ViewOf(const client::Problem& problem) {
  ContactProblemView view;
  view.time_step = problem.time_step;
  const client::Problem::RigidBodies& bodies = problem.bodies;
  view.bodies.mass = bodies.mass;
  view.bodies.inertia = bodies.inertia;
  view.bodies.center_of_mass = bodies.center_of_mass;
  view.bodies.free_motion_velocity = bodies.free_motion_velocity;
  view.bodies.body_id = bodies.body_id;
  const client::Problem::BodyContacts& contacts = problem.body_contacts;
  view.body_contacts.body_a = contacts.body_a;
  view.body_contacts.body_b = contacts.body_b;
  view.body_contacts.point = contacts.point;
  view.body_contacts.normal = contacts.normal;
  view.body_contacts.law.signed_distance = contacts.law.signed_distance;
  view.body_contacts.law.stiffness = contacts.law.stiffness;
  view.body_contacts.law.relaxation_time = contacts.law.relaxation_time;
  view.body_contacts.law.friction = contacts.law.friction;
  return view;
}

}  // namespace sap::bench
