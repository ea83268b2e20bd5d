// The cost of regularization: how far contacts and rows give way beyond their stiffness, and how
// fast friction that holds lets go.
//
//   sag     (R_n - 1 / (dt k (dt + tau))) gamma_n (dt + tau) of a contact, or of a row [m, rad]
//   creep   |R_t gamma_t| of a contact, R |g| of a row with a slip parameter [m/s, rad/s]
//
// Contacts of Hunt & Crossley have their compliance by their law: no sag, and no creep but that of
// their slip speed eps, which is not counted.
#pragma once

#include <algorithm>
#include <cmath>

#include "solver/laws/regularization.h"
#include "solver/model/constraint_inputs.h"
#include "solver/problem/contact_solution.h"

namespace sap {

// Raises sag and creep of a report to those of a contact with a friction cone, given its estimate w
// and its linear impulse.
inline void AddContactCost(const ContactProblem& problem, int contact, double w,
                           const double* impulse, IslandReport* report) {
  const double slip2 = impulse[0] * impulse[0] + impulse[1] * impulse[1];
  if (impulse[2] == 0 && slip2 == 0) return;
  ContactInputs in;
  in.shared = SharedInputsOf(problem);
  in.w = w;
  in.stiffness = problem.stiffness()[contact];
  in.relaxation_time = problem.tau_d()[contact];
  in.R_t = problem.given_R_t()[contact];
  in.R_n = problem.given_R_n()[contact];
  NoPartials none;
  const double R_n = NormalRegularization(in, 0, in, none);
  const double R_t = TangentialRegularization(in, 0, in, none);
  const double dt = problem.time_step();
  const double depth = R_n * (dt + in.relaxation_time) - 1 / (dt * in.stiffness);
  report->sag = std::max(report->sag, depth * impulse[2]);
  report->creep = std::max(report->creep, R_t * std::sqrt(slip2));
}

// Likewise those of a row with this R.
inline void AddRowCost(const ContactProblem& problem, int number, double R, double impulse,
                       IslandReport* report) {
  const RowParameters& row = problem.rows()[number];
  const double size = std::abs(impulse);
  if (row.slip_parameter > 0) {
    report->creep = std::max(report->creep, R * size);
  } else {
    const double dt = problem.time_step();
    const double length = R * (dt + row.relaxation_time) - 1 / (dt * row.stiffness);
    report->sag = std::max(report->sag, length * size);
  }
}

}  // namespace sap
