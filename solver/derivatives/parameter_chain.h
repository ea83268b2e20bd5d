// How the parameters of a law follow from the inputs of the problem, as partial derivatives: one
// list for both directions.
//
//   reverse   theta_bar is known:  input_bar += partial theta_bar
//   forward   d input is known:    d theta   += partial d input
//
//   R_n = max(beta^2 / (4 pi^2) w, 1 / (dt k (dt + tau_d)))   a tie is compliant
//   R_t = sigma w,   eps = max(stiction speed, mu sigma w n_0),   c = dt a,   bounds = dt f
//
// Parameters are numbered by row of v_hat, then as the law numbers them. They are in the unit of
// mass of the island, inputs in that of the problem, and so is w, which is an input here: it
// follows from J and A elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "solver/model/delassus.h"
#include "solver/pools/constraint_pools.h"
#include "solver/problem/contact_problem.h"

namespace sap {

// The inputs that all constraints share: their derivatives are summed by island.
struct SharedInputs {
  double time_step{0};
  double beta{0};
  double sigma{0};
  double row_beta{0};
  double stiction_speed{0};

  void Add(const SharedInputs& other) {
    time_step += other.time_step;
    beta += other.beta;
    sigma += other.sigma;
    row_beta += other.row_beta;
    stiction_speed += other.stiction_speed;
  }
};

class ParameterChain {
 public:
  ParameterChain(const ContactProblem& problem, double mass_unit)
      : problem_(problem), unit_(mass_unit), dt_(problem.time_step()) {}

  // Calls visit(parameter, input, partial) for the inputs of constraint `number` of a pool:
  // references into `inputs`, a ProblemDifferential, into `shared`, SharedInputs or a
  // ProblemDifferential, and to w_input. w is the value of w [1/kg].
  template <int index, typename Inputs, typename Shared, typename Input, typename Visit>
  void ForInputs(PoolIndex<index> pool, int number, double w, Inputs& inputs, Shared& shared,
                 Input& w_input, Visit&& visit) const {
    if constexpr (NumRows(pool.kind()) == 1) {
      ForRow(pool, number, w, inputs, shared, w_input, visit);
    } else {
      for (int row = 0; row < 3; ++row) visit(row, inputs.surface_velocity[3 * number + row], -1.0);
      if constexpr (IsHuntCrossley(pool.kind())) {
        ForHuntCrossley(number, w, inputs, shared, w_input, visit);
      } else {
        ForCone(pool, number, w, inputs, shared, w_input, visit);
      }
    }
  }

  // Distance of R, or eps, from its other branch, in [0, 1]; 1 where it is given.
  template <int index>
  double BranchMargin(PoolIndex<index> pool, int number, double w) const {
    const ContactProblemView::Regularization& rule = problem_.regularization();
    if constexpr (NumRows(pool.kind()) == 1) {
      const RowParameters& row = problem_.rows()[number];
      if (row.given_R != 0 || row.slip_parameter > 0) return 1;
      return RelativeDistance(NearRigid(rule.row_beta) * w * unit_,
                              Compliance(row.stiffness, row.relaxation_time));
    } else if constexpr (IsHuntCrossley(pool.kind())) {
      return RelativeDistance(rule.stiction_speed, SlipSpeed(number, w));
    } else {
      if (problem_.given_R_n()[number] != 0) return 1;
      return RelativeDistance(NearRigid(rule.beta) * w * unit_,
                              Compliance(problem_.stiffness()[number], problem_.tau_d()[number]));
    }
  }

  // Whether anything of the constraint depends on w.
  template <int index>
  bool DependsOnDelassus(PoolIndex<index> pool, int number) const {
    if constexpr (NumRows(pool.kind()) == 1) {
      return problem_.rows()[number].given_R == 0;
    } else if constexpr (IsHuntCrossley(pool.kind())) {
      return problem_.mu()[number] * HuntCrossleyOf(number).lagged_normal_impulse > 0;
    } else {
      return problem_.given_R_t()[number] == 0 || problem_.given_R_n()[number] == 0;
    }
  }

 private:
  const HuntCrossleyParameters& HuntCrossleyOf(int contact) const {
    return problem_.hunt_crossley()[problem_.contact_extra()[contact]];
  }
  // R of a stiffness k with relaxation time tau [1/unit of mass].
  double Compliance(double k, double tau) const { return unit_ / (dt_ * k * (dt_ + tau)); }
  // What regularized friction would have for eps by w alone [m/s].
  double SlipSpeed(int contact, double w) const {
    return problem_.mu()[contact] * problem_.regularization().sigma * w *
           HuntCrossleyOf(contact).lagged_normal_impulse;
  }

  // Of max(near_rigid beta^2 w, compliance), in front of visit(input, partial).
  template <typename Input, typename Visit>
  void ForStiffness(double k, double tau, double beta, double w, Input& k_input, Input& tau_input,
                    Input& dt_input, Input& beta_input, Input& w_input, Visit&& visit) const {
    const double near_rigid = NearRigid(beta) * (w * unit_);
    const double compliance = Compliance(k, tau);
    if (compliance < near_rigid) {
      visit(w_input, NearRigid(beta) * unit_);
      visit(beta_input, beta / (2 * std::numbers::pi * std::numbers::pi) * (w * unit_));
    } else {
      visit(k_input, -compliance / k);
      visit(tau_input, -compliance / (dt_ + tau));
      visit(dt_input, -compliance * (2 * dt_ + tau) / (dt_ * (dt_ + tau)));
    }
  }

  template <int index, typename Inputs, typename Shared, typename Input, typename Visit>
  void ForCone(PoolIndex<index> pool, int number, double w, Inputs& inputs, Shared& shared,
               Input& w_input, Visit&& visit) const {
    constexpr int kRows = NumRows(pool.kind());
    constexpr int kR_t = kRows, kR_n = kRows + 1, kAdhesion = kRows + 2, kMu = kRows + 3;
    const ContactProblemView::Regularization& rule = problem_.regularization();
    for (int row = 0; row < 3; ++row) visit(row, inputs.v_hat[3 * number + row], 1.0);
    visit(kMu, inputs.mu[number], 1.0);
    visit(kMu + 1, inputs.mu_2[number], 1.0);
    visit(kAdhesion, inputs.adhesion[number], dt_ / unit_);
    if (pool != kFrictionPool) {
      const GeneralFriction& general =
          problem_.general_friction()[problem_.contact_extra()[number]];
      visit(kAdhesion, shared.time_step, general.adhesion / unit_);
      for (int row = 3; row < kRows; ++row) {
        const int axis = row - kRows + 3;
        const int angular = general.angular_contact;
        visit(row, inputs.angular_v_hat[3 * angular + axis], 1.0);
        visit(kMu + row - 1, inputs.angular_friction[angular][axis], 1.0);
      }
    }
    if (problem_.given_R_t()[number] != 0) {
      visit(kR_t, inputs.R_t[number], unit_);
    } else {
      visit(kR_t, w_input, rule.sigma * unit_);
      visit(kR_t, shared.sigma, w * unit_);
    }
    if (problem_.given_R_n()[number] != 0) {
      visit(kR_n, inputs.R_n[number], unit_);
    } else {
      ForStiffness(problem_.stiffness()[number], problem_.tau_d()[number], rule.beta, w,
                   inputs.stiffness[number], inputs.tau_d[number], shared.time_step, shared.beta,
                   w_input, [&](auto& input, double partial) { visit(kR_n, input, partial); });
    }
  }

  // Parameters mu, dt f_e, dt^2 k, d, mu n_0, eps.
  template <typename Inputs, typename Shared, typename Input, typename Visit>
  void ForHuntCrossley(int number, double w, Inputs& inputs, Shared& shared, Input& w_input,
                       Visit&& visit) const {
    constexpr int kMu = 3, kElastic = 4, kStiffness = 5, kDissipation = 6, kBound = 7, kEps = 8;
    const HuntCrossleyParameters& given = HuntCrossleyOf(number);
    auto& of_contact = inputs.hunt_crossley[problem_.contact_extra()[number]];
    const ContactProblemView::Regularization& rule = problem_.regularization();
    const double mu = problem_.mu()[number];
    const double n_0 = given.lagged_normal_impulse;
    const double k = problem_.stiffness()[number];
    visit(kMu, inputs.mu[number], 1.0);
    visit(kElastic, of_contact.elastic_force, dt_ / unit_);
    visit(kElastic, shared.time_step, given.elastic_force / unit_);
    visit(kStiffness, inputs.stiffness[number], dt_ * dt_ / unit_);
    visit(kStiffness, shared.time_step, 2 * dt_ * k / unit_);
    visit(kDissipation, of_contact.dissipation, 1.0);
    visit(kBound, inputs.mu[number], n_0 / unit_);
    visit(kBound, of_contact.lagged_normal_impulse, mu / unit_);
    if (SlipSpeed(number, w) > rule.stiction_speed) {
      visit(kEps, inputs.mu[number], rule.sigma * w * n_0);
      visit(kEps, of_contact.lagged_normal_impulse, mu * rule.sigma * w);
      visit(kEps, shared.sigma, mu * w * n_0);
      visit(kEps, w_input, mu * rule.sigma * n_0);
    } else {
      visit(kEps, shared.stiction_speed, 1.0);
    }
  }

  // The target is v_hat - b + R dt u.
  template <int index, typename Inputs, typename Shared, typename Input, typename Visit>
  void ForRow(PoolIndex<index> pool, int number, double w, Inputs& inputs, Shared& shared,
              Input& w_input, Visit&& visit) const {
    constexpr int kTarget = 0, kR = 1, kLower = 2, kUpper = 3;
    const RowParameters& given = problem_.rows()[number];
    auto& row = inputs.rows[number];
    const double R = RowRegularization(given, w);
    visit(kTarget, row.v_hat, 1.0);
    visit(kTarget, row.offset, -1.0);
    visit(kTarget, row.force_offset, R * (dt_ / unit_));
    visit(kTarget, shared.time_step, R * (given.force_offset / unit_));
    const double target_by_R = dt_ / unit_ * given.force_offset;
    const auto visit_R = [&](auto& input, double partial) {
      visit(kR, input, partial);
      visit(kTarget, input, partial * target_by_R);
    };
    if (given.given_R != 0) {
      visit_R(row.given_R, unit_);
    } else if (given.slip_parameter > 0) {
      visit_R(row.slip_parameter, w * unit_);
      visit_R(w_input, given.slip_parameter * unit_);
    } else {
      ForStiffness(given.stiffness, given.relaxation_time, problem_.regularization().row_beta, w,
                   row.stiffness, row.relaxation_time, shared.time_step, shared.row_beta, w_input,
                   visit_R);
    }
    if constexpr (pool != kBilateralPool) {
      const auto visit_bound = [&](int parameter, double force, auto& input) {
        if (!std::isfinite(force)) return;
        visit(parameter, input, dt_ / unit_);
        visit(parameter, shared.time_step, force / unit_);
      };
      visit_bound(kLower, given.force_lower, row.force_lower);
      visit_bound(kUpper, given.force_upper, row.force_upper);
    }
  }
  double RowRegularization(const RowParameters& given, double w) const {
    if (given.given_R != 0) return given.given_R * unit_;
    if (given.slip_parameter > 0) return given.slip_parameter * (w * unit_);
    return std::max(NearRigid(problem_.regularization().row_beta) * (w * unit_),
                    Compliance(given.stiffness, given.relaxation_time));
  }

  const ContactProblem& problem_;
  const double unit_;
  const double dt_;
};

}  // namespace sap
