// Friction at one contact: the projection of y on the Coulomb cone in the norm of R, and what
// Newton's method needs of it.
//
//   gamma = argmin_{g in F} 1/2 (g - y)' R (g - y),   F = { |g_t| <= mu g_n }
//   y = -R^-1 (v_c - v_hat)
//
// In closed form by region [Castro et al. 2021, App. C], with y_r = |y_t|, t_hat = y_t / y_r,
// mu_hat = mu R_t / R_n and mu_tilde^2 = mu mu_hat:
//
//   stick   mu > 0, y_n > 0, y_r <= mu y_n   gamma   = y
//   slide   y_n > -mu_hat y_r, not stick     gamma_n = (y_n + mu_hat y_r) / (1 + mu_tilde^2)
//                                            gamma_t = mu gamma_n t_hat
//   open    else                             gamma   = 0
//
// gamma is continuous; its derivative G = -d gamma / d v_c, symmetric positive semidefinite [kg],
// jumps between regions:
//
//   stick   G = diag(1/R_t, 1/R_t, 1/R_n)
//   slide   G_nn = 1 / (R_n (1 + mu_tilde^2))
//           G_tn = mu G_nn t_hat
//           G_tt = mu^2 G_nn t_hat t_hat' + G_perp (1 - (s t_hat' + t_hat s') / 2)
//           G_perp = mu gamma_n / (R_t y_r)
//   open    G = 0
//
// with s = t_hat. The accelerated method puts the dual direction s, |s| <= 1, in its place [Chan,
// Golub, Mulet 1999, for total variation]: it linearizes |y_t| gamma_t = mu gamma_n y_t with
// gamma_t = mu gamma_n s in v and s together. G stays positive semidefinite and the gradient is
// unchanged, so the step descends on the true cost.
//
// mu = 0 takes no division: such a contact slides or is open, with gamma = (0, 0, y_n) and
// G = diag(0, 0, 1/R_n) where it slides.
#pragma once

#include <limits>

#include "solver/laws/law_types.h"
#include "solver/parallel/simd.h"

namespace sap {

// Constants of a contact during a solve. Lanes is double for one contact, Lanes4 for four.
template <typename Lanes>
struct ConeParameters {
  Lanes v_hat_x, v_hat_y, v_hat_n;  // v_hat - b [m/s]
  Lanes R_t, R_n;                   // [1/kg]
  Lanes inv_R_t, inv_R_n;           // [kg]
  Lanes mu, mu_hat;                 // [-]
  Lanes slide_factor;               // 1 / (1 + mu_tilde^2) [-]
};

// Three components in the contact frame (t1, t2, n).
template <typename Lanes>
struct ContactVector {
  Lanes x, y, n;
};

// The projection, with what its derivatives share.
template <typename Lanes>
struct ConePoint {
  using Mask = decltype(Lanes{} < Lanes{});
  ContactVector<Lanes> y;      // unconstrained impulse [N s]
  ContactVector<Lanes> gamma;  // impulse [N s]
  Lanes y_r;                   // |y_t|
  Lanes t_hat_x, t_hat_y;      // slip direction, 0 where y_r <= kLeastSize
  Lanes gamma_n_slide;         // normal impulse if sliding
  Mask stick, slide;           // stick overrides slide
};

template <typename Lanes>
struct SymmetricMatrix3 {
  Lanes xx, xy, yy, xn, yn, nn;
};

template <typename Lanes>
inline ConePoint<Lanes> ProjectOnCone(const ConeParameters<Lanes>& p,
                                      const ContactVector<Lanes>& v_c) {
  const Lanes zero{};
  ConePoint<Lanes> point;
  point.y.x = (p.v_hat_x - v_c.x) * p.inv_R_t;
  point.y.y = (p.v_hat_y - v_c.y) * p.inv_R_t;
  point.y.n = (p.v_hat_n - v_c.n) * p.inv_R_n;
  point.y_r = Sqrt(point.y.x * point.y.x + point.y.y * point.y.y);
  const Lanes one = zero + 1.0;
  const auto slips = point.y_r > kLeastSize;
  const Lanes inv_y_r = slips ? one / (slips ? point.y_r : one) : zero;
  point.t_hat_x = point.y.x * inv_y_r;
  point.t_hat_y = point.y.y * inv_y_r;
  point.stick = (point.y_r <= p.mu * point.y.n) & (point.y.n > zero) & (p.mu > zero);
  point.slide = point.y.n > -p.mu_hat * point.y_r;
  point.gamma_n_slide = p.slide_factor * (point.y.n + p.mu_hat * point.y_r);
  const Lanes gamma_t_slide = p.mu * point.gamma_n_slide;
  point.gamma.x = point.stick ? point.y.x : (point.slide ? gamma_t_slide * point.t_hat_x : zero);
  point.gamma.y = point.stick ? point.y.y : (point.slide ? gamma_t_slide * point.t_hat_y : zero);
  point.gamma.n = point.stick ? point.y.n : (point.slide ? point.gamma_n_slide : zero);
  return point;
}

// Cost 1/2 gamma' R gamma [J].
template <typename Lanes>
inline Lanes ConeCost(const ConeParameters<Lanes>& p, const ContactVector<Lanes>& gamma) {
  return 0.5 * (p.R_t * (gamma.x * gamma.x + gamma.y * gamma.y) + p.R_n * gamma.n * gamma.n);
}

// G_perp of a sliding contact, 0 where it has no slip direction.
template <typename Lanes>
inline Lanes SlidingCurvature(const ConeParameters<Lanes>& p, const ConePoint<Lanes>& point) {
  const Lanes zero{};
  const Lanes one = zero + 1.0;
  const auto slips = point.y_r > kLeastSize;
  const Lanes safe_y_r = slips ? point.y_r : one;
  return slips ? p.mu * point.gamma_n_slide * p.inv_R_t / safe_y_r : zero;
}

// G with the dual direction s; s = t_hat gives the derivative of gamma itself.
template <typename Lanes>
inline SymmetricMatrix3<Lanes> ConeHessian(const ConeParameters<Lanes>& p,
                                           const ConePoint<Lanes>& point, const Lanes& s_x,
                                           const Lanes& s_y) {
  const Lanes zero{};
  const Lanes G_perp = SlidingCurvature(p, point);
  const Lanes G_nn = p.slide_factor * p.inv_R_n;
  const Lanes G_tn = G_nn * p.mu;
  const Lanes G_par = G_tn * p.mu;
  const auto& t_x = point.t_hat_x;
  const auto& t_y = point.t_hat_y;
  const auto select = [&](const Lanes& stick, const Lanes& slide) {
    return point.stick ? stick : (point.slide ? slide : zero);
  };
  SymmetricMatrix3<Lanes> G;
  G.xx = select(p.inv_R_t, G_perp * (1.0 - s_x * t_x) + G_par * t_x * t_x);
  G.xy = select(zero, G_perp * (-0.5 * (s_x * t_y + s_y * t_x)) + G_par * t_x * t_y);
  G.yy = select(p.inv_R_t, G_perp * (1.0 - s_y * t_y) + G_par * t_y * t_y);
  G.xn = select(zero, G_tn * t_x);
  G.yn = select(zero, G_tn * t_y);
  G.nn = select(p.inv_R_n, G_nn);
  return G;
}

// First and second derivative of the contact's cost along v_c + alpha dv_c: -dv_c' gamma, and
// dv_c' G dv_c with s = t_hat.
template <typename Lanes>
struct ConeSlope {
  Lanes first, second;
};

template <typename Lanes>
inline ConeSlope<Lanes> ConeAlongLine(const ConeParameters<Lanes>& p, const ConePoint<Lanes>& point,
                                      const ContactVector<Lanes>& dv_c) {
  const Lanes zero{};
  const Lanes G_perp = SlidingCurvature(p, point);
  const Lanes G_nn = p.slide_factor * p.inv_R_n;
  const Lanes tangential2 = dv_c.x * dv_c.x + dv_c.y * dv_c.y;
  const Lanes along_slip = point.t_hat_x * dv_c.x + point.t_hat_y * dv_c.y;
  const Lanes normal = p.mu * along_slip + dv_c.n;
  const Lanes stick = tangential2 * p.inv_R_t + dv_c.n * dv_c.n * p.inv_R_n;
  const Lanes slide = G_perp * (tangential2 - along_slip * along_slip) + G_nn * normal * normal;
  ConeSlope<Lanes> slope;
  slope.first = -(dv_c.x * point.gamma.x + dv_c.y * point.gamma.y + dv_c.n * point.gamma.n);
  slope.second = point.stick ? stick : (point.slide ? slide : zero);
  return slope;
}

// The dual direction after a full Newton step that changes the contact velocity by dv_c, from the
// point and the s before it:
//
//   slide   s + ds = t_hat + (du - s t_hat'du) / |u|,   u = R_t y_t,   du = -dv_t
//   stick   s + ds = (y_t + du / R_t) / (mu max(y_n - dv_n / R_n, 0.3 y_n))
//   open    s + ds = 0
//
// then brought back to the unit disk.
template <typename Lanes>
inline void UpdateDualDirection(const ConeParameters<Lanes>& p, const ConePoint<Lanes>& point,
                                const ContactVector<Lanes>& dv_c, Lanes* s_x, Lanes* s_y) {
  const Lanes zero{};
  const Lanes one = zero + 1.0;
  const Lanes u_norm = p.R_t * point.y_r;
  const auto slips = u_norm > kLeastSize;
  const Lanes inv_u = slips ? one / (slips ? u_norm : one) : zero;
  const Lanes t_du = -(point.t_hat_x * dv_c.x + point.t_hat_y * dv_c.y);
  const Lanes slide_x = point.t_hat_x + (-dv_c.x - *s_x * t_du) * inv_u;
  const Lanes slide_y = point.t_hat_y + (-dv_c.y - *s_y * t_du) * inv_u;
  const Lanes y_n_after = point.y.n - dv_c.n * p.inv_R_n;
  const Lanes y_n_least = 0.3 * point.y.n;
  const Lanes bound = p.mu * (y_n_after > y_n_least ? y_n_after : y_n_least);
  const auto is_bounded = bound > kLeastSize;
  const Lanes inv_bound = is_bounded ? one / (is_bounded ? bound : one) : zero;
  const Lanes stick_x = (point.y.x - dv_c.x * p.inv_R_t) * inv_bound;
  const Lanes stick_y = (point.y.y - dv_c.y * p.inv_R_t) * inv_bound;
  const auto has_friction = p.mu > zero;
  const Lanes x = point.stick ? stick_x : (point.slide ? slide_x : zero);
  const Lanes y = point.stick ? stick_y : (point.slide ? slide_y : zero);
  const Lanes norm = Sqrt(x * x + y * y);
  const Lanes scale = norm > one ? one / (norm > one ? norm : one) : one;
  *s_x = has_friction ? x * scale : zero;
  *s_y = has_friction ? y * scale : zero;
}

// The dual direction that belongs to an impulse: gamma_t / (mu gamma_n), 0 where mu gamma_n <=
// kLeastSize.
template <typename Lanes>
inline void DualDirectionOf(const ConeParameters<Lanes>& p, const ContactVector<Lanes>& gamma,
                            Lanes* s_x, Lanes* s_y) {
  const Lanes zero{};
  const Lanes one = zero + 1.0;
  const Lanes bound = p.mu * gamma.n;
  const auto is_bounded = bound > kLeastSize;
  const Lanes inv_bound = is_bounded ? one / (is_bounded ? bound : one) : zero;
  *s_x = gamma.x * inv_bound;
  *s_y = gamma.y * inv_bound;
}

// Bound on the error of the impulse, by component, where v_c is known to within `error`: by
// that, and by the rounding of the projection itself. |d gamma / d v_c| is bounded over all
// regions, so a contact next to a boundary is covered.
template <typename Lanes>
inline ContactVector<Lanes> ConeImpulseError(const ConeParameters<Lanes>& p,
                                             const ContactVector<Lanes>& gamma,
                                             const ContactVector<Lanes>& error) {
  constexpr double kProjectionSteps = 32;  // rounding steps of a projection, generously counted
  constexpr double kOwn = kProjectionSteps * 0.5 * std::numeric_limits<double>::epsilon();
  const Lanes error_t = Abs(error.x) + Abs(error.y);
  const Lanes G_tn = p.slide_factor * p.mu * p.inv_R_n;
  const Lanes tangential = 2.0 * p.inv_R_t * error_t + G_tn * error.n;
  const Lanes normal = p.inv_R_n * error.n + G_tn * error_t;
  return {tangential + kOwn * Abs(gamma.x), tangential + kOwn * Abs(gamma.y),
          normal + kOwn * Abs(gamma.n)};
}

// One contact into its lane of four, and out of it.
inline void SetLane(const ContactVector<double>& value, int lane, ContactVector<Lanes4>* vector) {
  vector->x[lane] = value.x;
  vector->y[lane] = value.y;
  vector->n[lane] = value.n;
}

inline void SetLane(const ConeParameters<double>& value, int lane, ConeParameters<Lanes4>* vector) {
  vector->v_hat_x[lane] = value.v_hat_x;
  vector->v_hat_y[lane] = value.v_hat_y;
  vector->v_hat_n[lane] = value.v_hat_n;
  vector->R_t[lane] = value.R_t;
  vector->R_n[lane] = value.R_n;
  vector->inv_R_t[lane] = value.inv_R_t;
  vector->inv_R_n[lane] = value.inv_R_n;
  vector->mu[lane] = value.mu;
  vector->mu_hat[lane] = value.mu_hat;
  vector->slide_factor[lane] = value.slide_factor;
}

inline ContactVector<double> LaneOf(const ContactVector<Lanes4>& vector, int lane) {
  return {vector.x[lane], vector.y[lane], vector.n[lane]};
}

inline SymmetricMatrix3<double> LaneOf(const SymmetricMatrix3<Lanes4>& matrix, int lane) {
  return {matrix.xx[lane], matrix.xy[lane], matrix.yy[lane],
          matrix.xn[lane], matrix.yn[lane], matrix.nn[lane]};
}

}  // namespace sap
