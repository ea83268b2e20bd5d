// R and eps by the rules of the schema [Castro et al. 2021, Section V-B], each with its partial
// derivatives (law_inputs.h).
//
//   R_n, R of a row   max(beta^2 / (4 pi^2) w, 1 / (dt k (dt + tau)))   a tie is compliant
//   R_t               sigma w, or sigma R_n where nothing moves, w = 0
//   R of a row        slip_parameter w, where that is given
//   eps               max(stiction speed, mu sigma w n_0)
#pragma once

#include <numbers>

#include "solver/laws/law_inputs.h"

namespace sap {

// Near-rigid R over w.
inline double NearRigid(double beta) {
  return beta * beta / (4.0 * std::numbers::pi * std::numbers::pi);
}

// R by stiffness. `beta` chooses that of contacts or of rows.
template <typename Inputs>
inline Larger RegularizationByStiffness(const Inputs& in, double SharedInputs::*beta, auto& d,
                                        auto&& visit) {
  const double dt = in.shared.time_step;
  const double time = dt + in.relaxation_time;
  const double near_rigid = NearRigid(in.shared.*beta);
  const Larger R{near_rigid * in.w, 1 / (dt * in.stiffness * time)};
  if (R.second < R.first) {
    visit(d.w, near_rigid);
    visit(d.shared.*beta, in.shared.*beta / (2 * std::numbers::pi * std::numbers::pi) * in.w);
  } else {
    visit(d.stiffness, -R.second / in.stiffness);
    visit(d.relaxation_time, -R.second / time);
    visit(d.shared.time_step, -R.second * (2 * dt + in.relaxation_time) / (dt * time));
  }
  return R;
}

// R of a contact along its normal, and along its tangents, which is that of the first axis.
inline double NormalRegularization(const ConeInputs& in, int parameter, auto& d, auto& partials) {
  const auto visit = [&](auto& input, double partial) { partials(parameter, input, partial); };
  if (in.R_n != 0) {
    visit(d.R_n, 1.0);
    return in.R_n;
  }
  const Larger R = RegularizationByStiffness(in, &SharedInputs::beta, d, visit);
  partials.Choice(R);
  return R.value();
}
inline double TangentialRegularization(const ConeInputs& in, int parameter, auto& d,
                                       auto& partials) {
  if (in.R_t != 0) {
    partials(parameter, d.R_t, 1.0);
    return in.R_t;
  }
  if (in.w == 0) {
    ScaledPartials scaled{in.shared.sigma, partials};
    const double R_n = NormalRegularization(in, parameter, d, scaled);
    partials(parameter, d.shared.sigma, R_n);
    return in.shared.sigma * R_n;
  }
  partials(parameter, d.w, in.shared.sigma);
  partials(parameter, d.shared.sigma, in.w);
  return in.shared.sigma * in.w;
}

// eps of a contact of Hunt & Crossley.
inline double SlipRegularization(const HuntCrossleyInputs& in, int parameter, auto& d,
                                 auto& partials) {
  const double sigma = in.shared.sigma;
  const double n_0 = in.material.lagged_normal_impulse;
  const Larger eps{in.shared.stiction_speed, in.mu * sigma * in.w * n_0};
  partials.Choice(eps);
  if (eps.second > eps.first) {
    partials(parameter, d.mu, sigma * in.w * n_0);
    partials(parameter, d.material.lagged_normal_impulse, in.mu * sigma * in.w);
    partials(parameter, d.shared.sigma, in.mu * in.w * n_0);
    partials(parameter, d.w, in.mu * sigma * n_0);
  } else {
    partials(parameter, d.shared.stiction_speed, 1.0);
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
    visit(d.slip_parameter, in.w);
    visit(d.w, in.slip_parameter);
    return in.slip_parameter * in.w;
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
