// Friction at one contact: the projection of y on the Coulomb cone in the norm of R, and what
// Newton's method needs of it.
//
//   gamma = argmin_{g in F} 1/2 (g - y)' R (g - y),   F = { |g_t| <= mu g_n },   y = -R^-1 (v_c -
//   v_hat)
//
// In closed form by region [Castro et al. 2021, App. C], with y_r = |y_t|, t = y_t / y_r, mu_hat =
// mu R_t / R_n and c = 1 / (1 + mu mu_hat):
//
//   stick   y_r <= mu y_n, y_n > 0         gamma = y
//   slide   y_n > -mu_hat y_r, not stick   gamma_n = c (y_n + mu_hat y_r),  gamma_t = mu gamma_n t
//   open    else                           gamma = 0
//
// gamma is continuous; its derivative G = -d gamma / d v_c, symmetric positive semidefinite [kg],
// jumps between regions:
//
//   stick   G = diag(1/R_t, 1/R_t, 1/R_n)                                       open   G = 0
//   slide   G_tt = q (1 - (w t' + t w') / 2) + k mu^2 t t',  G_tn = k mu t,  G_nn = k,   q = mu
//   gamma_n / (R_t y_r), k = c / R_n
//
// with w = t. The accelerated method puts the dual direction w, |w| <= 1, in its place [Chan,
// Golub, Mulet 1999, for total variation]: it linearizes |y_t| gamma_t = mu gamma_n y_t with
// gamma_t = mu gamma_n w in v and w together. G stays positive semidefinite and the gradient is
// untouched, so that the step still descends on the true cost. mu = 0 takes no division.
#pragma once

#include "solver/parallel/simd.h"

namespace sap {

// What is constant of a contact during a solve. Lanes is double for one contact, Lanes4 for four.
template <typename Lanes>
struct ConeParameters {
  Lanes v_hat_x, v_hat_y, v_hat_n;  // v_hat - b [m/s]
  Lanes R_t, R_n;                   // [1/kg]
  Lanes inv_R_t, inv_R_n;           // [kg]
  Lanes mu, mu_hat, c;              // [-]
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
  Lanes t_x, t_y;              // slip direction, 0 where y_t = 0
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
  const Lanes inv_y_r = point.y_r > zero ? one / (point.y_r > zero ? point.y_r : one) : zero;
  point.t_x = point.y.x * inv_y_r;
  point.t_y = point.y.y * inv_y_r;
  point.stick = (point.y_r <= p.mu * point.y.n) & (point.y.n > zero);
  point.slide = point.y.n > -p.mu_hat * point.y_r;
  point.gamma_n_slide = p.c * (point.y.n + p.mu_hat * point.y_r);
  const Lanes gamma_t_slide = p.mu * point.gamma_n_slide;
  point.gamma.x = point.stick ? point.y.x : (point.slide ? gamma_t_slide * point.t_x : zero);
  point.gamma.y = point.stick ? point.y.y : (point.slide ? gamma_t_slide * point.t_y : zero);
  point.gamma.n = point.stick ? point.y.n : (point.slide ? point.gamma_n_slide : zero);
  return point;
}

// Cost 1/2 gamma' R gamma [J].
template <typename Lanes>
inline Lanes ConeCost(const ConeParameters<Lanes>& p, const ContactVector<Lanes>& gamma) {
  return 0.5 * (p.R_t * (gamma.x * gamma.x + gamma.y * gamma.y) + p.R_n * gamma.n * gamma.n);
}

// q = mu gamma_n / (R_t y_r) of a sliding contact, 0 where y_t = 0.
template <typename Lanes>
inline Lanes SlidingCurvature(const ConeParameters<Lanes>& p, const ConePoint<Lanes>& point) {
  const Lanes zero{};
  const Lanes one = zero + 1.0;
  const Lanes safe_y_r = point.y_r > zero ? point.y_r : one;
  return point.y_r > zero ? p.mu * point.gamma_n_slide * p.inv_R_t / safe_y_r : zero;
}

// G with the dual direction w; w = t gives the derivative of gamma itself.
template <typename Lanes>
inline SymmetricMatrix3<Lanes> ConeHessian(const ConeParameters<Lanes>& p,
                                           const ConePoint<Lanes>& point, const Lanes& w_x,
                                           const Lanes& w_y) {
  const Lanes zero{};
  const Lanes q = SlidingCurvature(p, point);
  const Lanes k = p.c * p.inv_R_n;
  const Lanes k_mu = k * p.mu;
  const Lanes k_mu2 = k_mu * p.mu;
  const auto& t_x = point.t_x;
  const auto& t_y = point.t_y;
  const auto select = [&](const Lanes& stick, const Lanes& slide) {
    return point.stick ? stick : (point.slide ? slide : zero);
  };
  SymmetricMatrix3<Lanes> G;
  G.xx = select(p.inv_R_t, q * (1.0 - w_x * t_x) + k_mu2 * t_x * t_x);
  G.xy = select(zero, q * (-0.5 * (w_x * t_y + w_y * t_x)) + k_mu2 * t_x * t_y);
  G.yy = select(p.inv_R_t, q * (1.0 - w_y * t_y) + k_mu2 * t_y * t_y);
  G.xn = select(zero, k_mu * t_x);
  G.yn = select(zero, k_mu * t_y);
  G.nn = select(p.inv_R_n, k);
  return G;
}

// First and second derivative of the contact's cost along v_c + alpha d: -d' gamma and d' G d with
// w = t.
template <typename Lanes>
struct ConeSlope {
  Lanes first, second;
};

template <typename Lanes>
inline ConeSlope<Lanes> ConeAlongLine(const ConeParameters<Lanes>& p, const ConePoint<Lanes>& point,
                                      const ContactVector<Lanes>& d) {
  const Lanes zero{};
  const Lanes q = SlidingCurvature(p, point);
  const Lanes k = p.c * p.inv_R_n;
  const Lanes d_t2 = d.x * d.x + d.y * d.y;
  const Lanes t_d = point.t_x * d.x + point.t_y * d.y;
  const Lanes normal = p.mu * t_d + d.n;
  const Lanes stick = d_t2 * p.inv_R_t + d.n * d.n * p.inv_R_n;
  const Lanes slide = q * (d_t2 - t_d * t_d) + k * normal * normal;
  ConeSlope<Lanes> slope;
  slope.first = -(d.x * point.gamma.x + d.y * point.gamma.y + d.n * point.gamma.n);
  slope.second = point.stick ? stick : (point.slide ? slide : zero);
  return slope;
}

// The dual direction after a full Newton step by which the contact velocity changes by d, from
// point and w before it:
//
//   slide: w + dw = t + (du - w t'du) / |u|   stick: (y_t + du / R_t) / (mu max(y_n - d_n / R_n,
//   0.3 y_n))   open: 0
//
// with u = R_t y_t and du = -d_t, then brought back to the unit disk.
template <typename Lanes>
inline void UpdateDualDirection(const ConeParameters<Lanes>& p, const ConePoint<Lanes>& point,
                                const ContactVector<Lanes>& d, Lanes* w_x, Lanes* w_y) {
  const Lanes zero{};
  const Lanes one = zero + 1.0;
  const Lanes u_norm = p.R_t * point.y_r;
  const Lanes inv_u = u_norm > zero ? one / (u_norm > zero ? u_norm : one) : zero;
  const Lanes t_du = -(point.t_x * d.x + point.t_y * d.y);
  const Lanes slide_x = point.t_x + (-d.x - *w_x * t_du) * inv_u;
  const Lanes slide_y = point.t_y + (-d.y - *w_y * t_du) * inv_u;
  const Lanes y_n_after = point.y.n - d.n * p.inv_R_n;
  const Lanes y_n_least = 0.3 * point.y.n;
  const Lanes bound = p.mu * (y_n_after > y_n_least ? y_n_after : y_n_least);
  const Lanes inv_bound = bound > zero ? one / (bound > zero ? bound : one) : zero;
  const Lanes stick_x = (point.y.x - d.x * p.inv_R_t) * inv_bound;
  const Lanes stick_y = (point.y.y - d.y * p.inv_R_t) * inv_bound;
  const auto has_friction = p.mu > zero;
  const Lanes x = point.stick ? stick_x : (point.slide ? slide_x : zero);
  const Lanes y = point.stick ? stick_y : (point.slide ? slide_y : zero);
  const Lanes norm = Sqrt(x * x + y * y);
  const Lanes scale = norm > one ? one / (norm > one ? norm : one) : one;
  *w_x = has_friction ? x * scale : zero;
  *w_y = has_friction ? y * scale : zero;
}

// The dual direction that belongs to an impulse: gamma_t / (mu gamma_n), 0 without friction or
// normal impulse.
template <typename Lanes>
inline void DualDirectionOf(const ConeParameters<Lanes>& p, const ContactVector<Lanes>& gamma,
                            Lanes* w_x, Lanes* w_y) {
  const Lanes zero{};
  const Lanes one = zero + 1.0;
  const Lanes bound = p.mu * gamma.n;
  const Lanes inv_bound = bound > zero ? one / (bound > zero ? bound : one) : zero;
  *w_x = gamma.x * inv_bound;
  *w_y = gamma.y * inv_bound;
}

}  // namespace sap
