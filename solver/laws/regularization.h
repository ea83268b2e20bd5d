// R and eps by the rules of the schema [Castro et al. 2021, Section V-B], each with its partial
// derivatives (law_inputs.h).
//
//   R_n, R of a row   max(beta^2 / (4 pi^2) w s, 1 / (dt k (dt + tau)))   a tie is compliant
//   R_t               sigma w h / dt, or sigma R_n h / dt where nothing moves, w = 0
//   R of a row        slip_parameter w h / dt, where that is given
//   eps               max(stiction speed, mu sigma w n_0 h / dt)
//
// with s = h (h + tau) / (dt (dt + tau)) and the reference time step h: a dashpot of 1 / (dt R_t)
// and a spring of 1 / (dt (dt + tau) R_n) are then those of a step of h. Without one h = dt, and
// both factors are 1.
#pragma once

#include <numbers>

#include "solver/laws/law_inputs.h"

namespace sap {

// Near-rigid R over w.
inline double NearRigid(double beta) {
  return beta * beta / (4.0 * std::numbers::pi * std::numbers::pi);
}

// A factor of R by the reference time step, with its partial derivatives.
struct StepFactor {
  double value{1}, by_reference{0}, by_time_step{0}, by_relaxation_time{0};

  // Partial derivatives of R = of_step * value, where of_step is held.
  void Visit(double of_step, auto& shared, auto&& visit) const {
    visit(shared.reference_time_step, of_step * by_reference);
    visit(shared.time_step, of_step * by_time_step);
  }
};
// h / dt.
inline StepFactor DashpotFactor(const SharedInputs& in) {
  const double h = in.reference_time_step;
  const double dt = in.time_step;
  if (h == 0) return {};
  return {h / dt, 1 / dt, -h / dt / dt};
}
// h (h + tau) / (dt (dt + tau)), as a product of ratios: 1 where h = dt, however small they are.
inline StepFactor SpringFactor(const SharedInputs& in, double tau) {
  const double h = in.reference_time_step;
  const double dt = in.time_step;
  if (h == 0) return {};
  const double steps = h / dt;
  const double periods = (h + tau) / (dt + tau);
  const double value = steps * periods;
  return {value, (periods + steps * dt / (dt + tau)) / dt, -(value / dt) * (1 + dt / (dt + tau)),
          steps * (1 - periods) / (dt + tau)};
}

// R by stiffness. `beta` chooses that of contacts or of rows.
template <typename Inputs>
inline Larger RegularizationByStiffness(const Inputs& in, double SharedInputs::*beta, auto& d,
                                        auto&& visit) {
  const double dt = in.shared.time_step;
  const double time = dt + in.relaxation_time;
  const StepFactor factor = SpringFactor(in.shared, in.relaxation_time);
  const double near_rigid = NearRigid(in.shared.*beta);
  const Larger R{near_rigid * in.w * factor.value, 1 / (dt * in.stiffness * time)};
  if (R.second < R.first) {
    const double by_beta = in.shared.*beta / (2 * std::numbers::pi * std::numbers::pi) * in.w;
    visit(d.w, near_rigid * factor.value);
    visit(d.shared.*beta, by_beta * factor.value);
    visit(d.relaxation_time, near_rigid * in.w * factor.by_relaxation_time);
    factor.Visit(near_rigid * in.w, d.shared, visit);
  } else {
    visit(d.stiffness, -R.second / in.stiffness);
    visit(d.relaxation_time, -R.second / time);
    visit(d.shared.time_step, -R.second * (2 * dt + in.relaxation_time) / (dt * time));
  }
  return R;
}

// R of a contact along its normal, and along its tangents, which is that of the first axis.
inline double NormalRegularization(const ContactInputs& in, int parameter, auto& d,
                                   auto& partials) {
  const auto visit = [&](auto& input, double partial) { partials(parameter, input, partial); };
  if (in.R_n != 0) {
    visit(d.R_n, 1.0);
    return in.R_n;
  }
  const Larger R = RegularizationByStiffness(in, &SharedInputs::beta, d, visit);
  partials.Choice(R);
  return R.value();
}
inline double TangentialRegularization(const ContactInputs& in, int parameter, auto& d,
                                       auto& partials) {
  const auto visit = [&](auto& input, double partial) { partials(parameter, input, partial); };
  if (in.R_t != 0) {
    visit(d.R_t, 1.0);
    return in.R_t;
  }
  const double sigma = in.shared.sigma;
  const StepFactor factor = DashpotFactor(in.shared);
  double mobility = in.w;
  if (in.w == 0) {
    ScaledPartials scaled{sigma * factor.value, partials};
    mobility = NormalRegularization(in, parameter, d, scaled);
  } else {
    visit(d.w, sigma * factor.value);
  }
  visit(d.shared.sigma, mobility * factor.value);
  factor.Visit(sigma * mobility, d.shared, visit);
  return sigma * mobility * factor.value;
}

// eps of a contact of Hunt & Crossley.
inline double SlipRegularization(const HuntCrossleyInputs& in, int parameter, auto& d,
                                 auto& partials) {
  const auto visit = [&](auto& input, double partial) { partials(parameter, input, partial); };
  const double sigma = in.shared.sigma;
  const double n_0 = in.material.lagged_normal_impulse;
  const StepFactor factor = DashpotFactor(in.shared);
  const double of_step = in.mu * sigma * in.w * n_0;
  const Larger eps{in.shared.stiction_speed, of_step * factor.value};
  partials.Choice(eps);
  if (eps.second > eps.first) {
    visit(d.mu, sigma * in.w * n_0 * factor.value);
    visit(d.material.lagged_normal_impulse, in.mu * sigma * in.w * factor.value);
    visit(d.shared.sigma, in.mu * in.w * n_0 * factor.value);
    visit(d.w, in.mu * sigma * n_0 * factor.value);
    factor.Visit(of_step, d.shared, visit);
  } else {
    visit(d.shared.stiction_speed, 1.0);
  }
  return eps.value();
}

// R of a row, with visit(input, dR/d(input)).
inline double RowRegularization(const RowInputs& in, auto& d, auto&& visit, auto&& partials) {
  if (in.given_R != 0) {
    visit(d.given_R, 1.0);
    return in.given_R;
  }
  if (in.slip_parameter > 0) {
    const StepFactor factor = DashpotFactor(in.shared);
    visit(d.slip_parameter, in.w * factor.value);
    visit(d.w, in.slip_parameter * factor.value);
    factor.Visit(in.slip_parameter * in.w, d.shared, visit);
    return in.slip_parameter * in.w * factor.value;
  }
  const Larger R = RegularizationByStiffness(in, &SharedInputs::row_beta, d, visit);
  partials.Choice(R);
  return R.value();
}
inline double RowRegularization(const RowInputs& in) {
  return RowRegularization(
      in, in, [](double, double) {}, NoPartials());
}

}  // namespace sap
