// One number for each number of a ContactProblem: a direction in which the problem changes, or the
// derivative dL/d(number) of some L.
//
// Arrays and units are those of the problem, so that bodies are trees and their contacts have
// Jacobians. input_differential.h leads from here to the arrays that the client knows, and back.
#pragma once

#include <vector>

#include "solver/problem/contact_problem.h"

namespace sap {

struct ProblemDifferential {
  double time_step{0};
  double beta{0};
  double sigma{0};
  double row_beta{0};
  double stiction_speed{0};
  std::vector<double> dynamics_matrix;  // symmetric blocks G, dL = sum G_ij dA_ij
  std::vector<double> v_star;
  // Per contact. R_t and R_n where they are given; w of every contact.
  std::vector<double> jacobian;
  std::vector<double> v_hat;             // [3 C], contact frame
  std::vector<double> surface_velocity;  // [3 C], contact frame
  std::vector<double> tau_d;             // by R_n alone: v_hat is an input of its own here
  std::vector<double> mu;                // at mu_2 held where the contact has a general cone
  std::vector<double> stiffness;
  std::vector<double> R_t;
  std::vector<double> R_n;
  std::vector<double> w;
  std::vector<GeneralFriction> general_friction;  // angular_contact is not used
  std::vector<HuntCrossleyParameters> hunt_crossley;
  std::vector<double> angular_jacobian;
  std::vector<double> angular_v_hat;
  // Per row. relaxation_time by R alone; given_R and given_w where they are given.
  std::vector<RowParameters> rows;
  std::vector<double> row_coefficients;

  // Everything 0, sized for the problem. Storage only grows.
  void Reset(const ContactProblem& problem);
};

}  // namespace sap
