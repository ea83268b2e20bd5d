// A mass point that slides along x on a table, with R_t and R_n given: its speed after the step and
// the derivatives of it in closed form.
//
//   gamma_n = (v_hat_n - v_n + mu v_x) / (R_n + mu^2 R_t),   gamma_t = -mu gamma_n
//   v_x = v_x* - mu gamma_n / m,   v_n = v_n* + gamma_n / m
#pragma once

#include "sap/v1/solver_service.pb.h"

namespace sap::test {

struct SlidingPoint {
  double mass{2};
  double friction{0.3};
  double R_t{0.02};
  double R_n{0.1};
  double v_x{1};        // v*
  double v_n{-0.0981};  // v*; the distance is 0

  double N() const { return friction * v_x - v_n; }
  double D() const { return R_n + friction * friction * R_t + (1 + friction * friction) / mass; }
  double Speed() const { return v_x - friction * N() / D() / mass; }
  double SpeedByFriction() const {
    const double impulse = N() / D();
    const double change = (v_x - 2 * friction * impulse * (R_t + 1 / mass)) / D();
    return -(impulse + friction * change) / mass;
  }
  double SpeedByImpulse() const { return (1 - friction * friction / (mass * D())) / mass; }

  // The speed is differentiated.
  v1::DifferentiateRequest Request() const {
    v1::DifferentiateRequest request;
    v1::ContactProblem* problem = request.mutable_problem();
    problem->set_time_step(0.01);
    problem->mutable_trees()->add_dofs(3);
    v1::Contacts* contacts = problem->mutable_contacts();
    contacts->add_tree_a(0);
    contacts->add_tree_b(-1);
    for (int i = 0; i < 9; ++i) {
      problem->mutable_trees()->add_dynamics_matrix(i % 4 == 0 ? mass : 0);
      contacts->add_jacobian(i % 4 == 0 ? 1 : 0);
    }
    for (const double v : {v_x, 0.0, v_n}) {
      problem->mutable_trees()->add_free_motion_velocity(v);
    }
    contacts->add_signed_distance(0);
    contacts->add_relaxation_time(0);
    contacts->add_friction(friction);
    contacts->add_regularization_t(R_t);
    contacts->add_regularization_n(R_n);
    v1::Cotangent* cotangent = request.add_cotangents();
    for (const double v_bar : {1.0, 0.0, 0.0}) cotangent->add_velocity(v_bar);
    return request;
  }
};

}  // namespace sap::test
