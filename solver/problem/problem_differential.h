// One number for each number of a ContactProblem: a direction in which the problem changes, or the
// derivative dL/d(number) of some L.
//
// Arrays and units are those of the problem, so that bodies are trees and their contacts have
// Jacobians. input_differential.h leads from here to the arrays that the client knows, and back.
#pragma once

#include <array>
#include <vector>

#include "solver/problem/constraint_parameters.h"
#include "solver/problem/problem_fields.h"

namespace sap {

class ContactProblem;

// The numbers of a problem that all constraints share, and derivatives with respect to them.
struct SharedInputs {
  double time_step{0};  // by R and by bounds of impulses: v_hat is an input of its own here
  double beta{0};
  double sigma{0};
  double row_beta{0};
  double stiction_speed{0};
  double reference_time_step{0};  // h; 0: that of the step

  std::array<double*, 6> all() {
    return {&time_step, &beta, &sigma, &row_beta, &stiction_speed, &reference_time_step};
  }
  void Add(SharedInputs other) {
    for (size_t i = 0; i < all().size(); ++i) *all()[i] += *other.all()[i];
  }
};

struct ProblemDifferential : SharedInputs {
  std::vector<double> dynamics_matrix;  // symmetric blocks G, dL = sum G_ij dA_ij
  std::vector<double> coupling_block;   // of A_ab, with A_ba its transpose
  std::vector<double> v_star;
  // Per contact. R_t and R_n where they are given; w of every contact.
  std::vector<double> jacobian;
  std::vector<double> v_hat;             // [3 C], contact frame
  std::vector<double> surface_velocity;  // [3 C], contact frame
  std::vector<double> tau_d;             // by R_n alone
  // Along t1 at the coefficient of t2 held, R_2 = R_t mu^2 / mu_2^2. Along both where one number
  // stands for both: at mu = 0 and in laws of Hunt & Crossley, where mu_2 below is 0.
  std::vector<double> mu;
  std::vector<double> mu_2;  // along t2, of kFriction too
  std::vector<double> stiffness;
  std::vector<double> R_t;
  std::vector<double> R_n;
  std::vector<double> w;
  std::vector<double> adhesion;  // of every contact but those of Hunt & Crossley
  std::vector<HuntCrossleyParameters> hunt_crossley;
  // Per contact with angular Jacobians. A coefficient of 0 has no derivative other than 0: the
  // impulse about its axis is quadratic in it.
  std::vector<std::array<double, 3>> angular_friction;  // about t1, t2 (rolling) and n (torsional)
  std::vector<double> angular_jacobian;
  std::vector<double> angular_v_hat;
  // Per row. relaxation_time by R alone; given_R and given_w where they are given.
  std::vector<RowParameters> rows;
  std::vector<double> row_coefficients;

  // Everything 0, sized for the problem. Storage only grows.
  void Reset(const ContactProblem& problem);
};

}  // namespace sap
