// The inputs of single constraints (laws/law_inputs.h) out of a problem, in the unit of mass of
// their island. w is left at 0.
#pragma once

#include "solver/laws/law_inputs.h"
#include "solver/problem/contact_problem.h"

namespace sap {

inline SharedInputs SharedInputsOf(const ContactProblem& problem) {
  const ContactProblemView::Regularization& rule = problem.regularization();
  return {problem.time_step(), rule.beta,           rule.sigma,
          rule.row_beta,       rule.stiction_speed, rule.reference_time_step};
}

inline void ReadInputs(const ContactProblem& problem, int contact, double unit,
                       ContactInputs* inputs) {
  for (int axis = 0; axis < 3; ++axis) {
    inputs->v_hat[axis] = problem.v_hat()[3 * contact + axis];
    inputs->surface_velocity[axis] = problem.surface_velocity()[3 * contact + axis];
  }
  inputs->mu = problem.mu()[contact];
  inputs->stiffness = problem.stiffness()[contact] / unit;
  inputs->relaxation_time = problem.tau_d()[contact];
  inputs->R_t = problem.given_R_t()[contact] * unit;
  inputs->R_n = problem.given_R_n()[contact] * unit;
}

inline void ReadInputs(const ContactProblem& problem, int contact, double unit,
                       ConeInputs* inputs) {
  ReadInputs(problem, contact, unit, static_cast<ContactInputs*>(inputs));
  inputs->mu_2 = inputs->mu;
  const int extra = problem.contact_extra()[contact];
  if (extra < 0) return;
  const GeneralFriction& general = problem.general_friction()[extra];
  inputs->mu_2 = general.mu_2;
  inputs->adhesion = general.adhesion / unit;
  inputs->angular_friction = general.angular;
  if (general.angular_contact < 0) return;
  for (int axis = 0; axis < 3; ++axis) {
    inputs->angular_v_hat[axis] = problem.angular_v_hat()[3 * general.angular_contact + axis];
  }
}

inline void ReadInputs(const ContactProblem& problem, int contact, double unit,
                       HuntCrossleyInputs* inputs) {
  ReadInputs(problem, contact, unit, static_cast<ContactInputs*>(inputs));
  inputs->material = problem.hunt_crossley()[problem.contact_extra()[contact]];
  inputs->material.elastic_force /= unit;
  inputs->material.lagged_normal_impulse /= unit;
}

inline void ReadInputs(const ContactProblem& problem, int row, double unit, RowInputs* inputs) {
  static_cast<RowParameters&>(*inputs) = problem.rows()[row];
  for (double* mass :
       {&inputs->stiffness, &inputs->force_lower, &inputs->force_upper, &inputs->force_offset}) {
    *mass /= unit;
  }
  for (double* per_mass : {&inputs->given_R, &inputs->given_w}) *per_mass *= unit;
}

// The inputs of the contact or row `number`.
template <typename Inputs>
inline Inputs InputsOf(const ContactProblem& problem, int number, double unit) {
  Inputs inputs;
  inputs.shared = SharedInputsOf(problem);
  ReadInputs(problem, number, unit, &inputs);
  return inputs;
}

}  // namespace sap
