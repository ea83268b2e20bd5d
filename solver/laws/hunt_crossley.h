// The law of a contact with the normal force of Hunt & Crossley and regularized friction.
//
// In v = v_c + b, with the elastic force f_e at the beginning of the step, stiffness k and
// dissipation d, the normal impulse n and its integral N, constant where the contact is open, are
//
//   f(z) = f_e - dt k z,   q(z) = 1 - d z,   n(z) = dt f q where f > 0 and q > 0, else 0
//   N(z) = N+(min(z, v_z)),   v_z = min(f_e / (dt k), 1 / d)
//   N+(z) = dt z (f_e + df / 2) - dt d z^2 / 2 (f_e + 2 df / 3),   df = -dt k z
//
// k = 0 with f_e <= 0 is open at any z, with N = 0; k = 0 with f_e > 0 or d = 0 bounds nothing.
// n is convex and decreases. Friction of size m acts along t, shorter than 1:
//
//   E = sqrt(|v_t|^2 + eps^2),   t = v_t / E,   |v_t|_s = E - eps = |v_t|^2 / (E + eps)
//
//   lagged    m = mu n_0,    f = -N(v_n) + m |v_t|_s                       n_0 is given
//   similar   m = mu n(z),   f = -N(z),   z = v_n - mu |v_t|_s
//
//   gamma = (-m t, n)
//   G_tt = (m / E)(1 - (s t' + t s') / 2)      similar also - mu^2 n' t t'
//   G_tn = 0                                   similar mu n' t
//   G_nn = -n' = dt (dt k q + d f) where n > 0
//
// with s = t. f is convex and can be negative. G is symmetric positive semidefinite and jumps only
// where the contact opens. No constant bounds n', which grows with the speed of approach.
//
// The accelerated method has the dual direction in place of s (dual_direction.h), with which
// the first term of G_tt is at most 2 m / E. It starts as t and changes on a full Newton step as
// t + (dv_t - s t'dv_t) / E.
//
// A similar contact with dt^2 k w >> 1 is a stiff constraint z >= v_z on a curved surface. A step
// along its tangent plane leaves the surface, which makes n(z), and with it the first term of G_tt,
// orders of magnitude larger than where the step comes from and leads to. So the accelerated method
// takes m = mu n(z~) there, with the z~ that the last full step would have led to if |v_t|_s were
// linear,
//
//   z~ = z + dz where it is closed, else z,   dz = dv_n - mu t'dv_t
//
// and the larger of -n'(z) and -n'(z~), so that a contact that has left its surface by little stays
// closed for the next step. And where the line search allows only a fraction of a step it tries a
// longer one, by the slope of a cost without that curvature (newton/sap_solver.cc):
//
//   f~(alpha) = -N(z + alpha dz) + mu n(z~) (|v_t + alpha dv_t|_s - |v_t|_s - alpha t'dv_t)
//
// which has the gradient and, with s = t, the Hessian of the method at alpha = 0.
//
// Derivatives at fixed v, with P = dt f_e, K = dt^2 k and N_theta at min(z, v_z), where n = 0:
//
//   n_P = q         n_K = -z q                  n_d = -z f dt
//   N_P = z - d z^2 / 2   N_K = -z^2 / 2 + d z^3 / 3   N_d = -z^2 / 2 (P - 2/3 K z)
//   t_eps = -eps t / E^2,   d|v_t|_s / d eps = eps / E - 1
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/laws/dual_direction.h"
#include "solver/laws/regularization.h"

namespace sap {

// Rows (t1, t2, n).
template <bool kIsLagged>
struct HuntCrossley {
  static constexpr int kRows = 3;
  static constexpr bool kIsCurved = !kIsLagged;
  using Inputs = HuntCrossleyInputs;
  using Slip = std::array<double, 2>;
  using DualDirection = std::array<double, kIsLagged ? 2 : 3>;  // s, and z~ of a similar contact

  struct Parameters {
    LawVector<kRows> offset;         // b [m/s]
    double mu;                       // [-]
    double elastic_impulse;          // dt f_e [N s]
    double normal_stiffness;         // dt^2 k [kg]
    double d;                        // [s/m]
    double lagged_bound;             // mu n_0 [N s]
    double eps;                      // [m/s]
    double opening_velocity;         // v_z, infinite where nothing bounds it [m/s]
    double opening_potential;        // N(v_z), 0 where v_z is infinite [J]
    LawVector<kRows> target_size{};  // |b|

    static Parameters Make(const LawVector<kRows>& offset, double mu, double f_e, double k,
                           double d, double n_0, double eps, double dt) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      Parameters p{.offset = offset,
                   .mu = mu,
                   .elastic_impulse = dt * f_e,
                   .normal_stiffness = dt * dt * k,
                   .d = d,
                   .lagged_bound = mu * n_0,
                   .eps = eps,
                   .opening_velocity = f_e > 0 ? kInfinity : -kInfinity,
                   .opening_potential = 0};
      if (p.normal_stiffness > 0) p.opening_velocity = p.elastic_impulse / p.normal_stiffness;
      if (d > 0) p.opening_velocity = std::min(p.opening_velocity, 1 / d);
      if (std::isfinite(p.opening_velocity)) {
        p.opening_potential = p.ClosedPotential(p.opening_velocity);
      }
      return p;
    }
    bool IsRepresentable() const {
      bool is_finite = std::isfinite(elastic_impulse) && std::isfinite(normal_stiffness) &&
                       std::isfinite(d) && std::isfinite(mu) && std::isfinite(lagged_bound) &&
                       std::isfinite(opening_potential);
      for (const double component : offset) is_finite &= std::isfinite(component);
      // t is shorter than 1 and continuous only where the square of eps is a normal number.
      return is_finite && std::isnormal(eps * eps);
    }
    bool HasNonNegativeCost() const { return false; }

    // N+(z).
    double ClosedPotential(double z) const {
      const double df = -normal_stiffness * z;
      return z * (elastic_impulse + 0.5 * df) -
             0.5 * d * z * z * (elastic_impulse + 2.0 / 3.0 * df);
    }
    // n(z).
    double NormalImpulse(double z) const {
      if (!(z < opening_velocity)) return 0;
      return std::max((elastic_impulse - normal_stiffness * z) * (1 - d * z), 0.0);
    }
    // -n'(z), from the left where the contact opens.
    double NormalCurvature(double z) const {
      if (z >= opening_velocity) return 0;
      const double curvature =
          normal_stiffness * (1 - d * z) + d * (elastic_impulse - normal_stiffness * z);
      return std::max(curvature, 0.0);
    }
  };
  // Parameters b, mu, P, K, d, mu n_0, eps.
  static Parameters Make(const HuntCrossleyInputs& in, auto& d, auto&& partials) {
    constexpr int kMu = kRows, kP = kRows + 1, kK = kRows + 2, kD = kRows + 3, kBound = kRows + 4,
                  kEps = kRows + 5;
    const HuntCrossleyParameters& given = in.material;
    const double dt = in.shared.time_step;
    for (int row = 0; row < kRows; ++row) partials(row, d.surface_velocity[row], -1.0);
    partials(kMu, d.mu, 1.0);
    partials(kP, d.material.elastic_force, dt);
    partials(kP, d.shared.time_step, given.elastic_force);
    partials(kK, d.stiffness, dt * dt);
    partials(kK, d.shared.time_step, 2 * dt * in.stiffness);
    partials(kD, d.material.dissipation, 1.0);
    partials(kBound, d.mu, given.lagged_normal_impulse);
    partials(kBound, d.material.lagged_normal_impulse, in.mu);
    const double eps = SlipRegularization(in, kEps, d, partials);
    Parameters p = Parameters::Make(in.surface_velocity, in.mu, given.elastic_force, in.stiffness,
                                    given.dissipation, given.lagged_normal_impulse, eps, dt);
    for (int row = 0; row < kRows; ++row) p.target_size[row] = std::abs(p.offset[row]);
    return p;
  }

  struct Point {
    LawVector<kRows> gamma;
    double cost;
    Slip t;
    double E;
    double z;
    double friction_bound;    // m [N s]
    double normal_curvature;  // -n' [kg]
  };

  static Point At(const Parameters& p, const LawVector<kRows>& v_c) {
    const Slip v_t{v_c[0] + p.offset[0], v_c[1] + p.offset[1]};
    const double v_n = v_c[2] + p.offset[2];
    const double v_t2 = Dot(v_t, v_t);
    Point point;
    point.E = std::sqrt(v_t2 + p.eps * p.eps);
    point.t = {v_t[0] / point.E, v_t[1] / point.E};
    const double soft_speed = v_t2 / (point.E + p.eps);
    point.z = kIsLagged ? v_n : v_n - p.mu * soft_speed;
    const double n = p.NormalImpulse(point.z);
    const double potential =
        point.z < p.opening_velocity ? p.ClosedPotential(point.z) : p.opening_potential;
    point.normal_curvature = p.NormalCurvature(point.z);
    point.friction_bound = kIsLagged ? p.lagged_bound : p.mu * n;
    point.gamma = {-point.friction_bound * point.t[0], -point.friction_bound * point.t[1], n};
    point.cost = kIsLagged ? p.lagged_bound * soft_speed - potential : -potential;
    return point;
  }

  static LawMatrix<kRows> Hessian(const Parameters& p, const Point& point) {
    return HessianOf(p, point, point.t, point.friction_bound, point.normal_curvature);
  }
  static LawMatrix<kRows> Hessian(const Parameters& p, const Point& point, const DualDirection& s) {
    double normal_curvature = point.normal_curvature;
    if constexpr (!kIsLagged) {
      normal_curvature = std::max(normal_curvature, p.NormalCurvature(s.back()));
    }
    return HessianOf(p, point, {s[0], s[1]}, DualBound(p, point, s), normal_curvature);
  }

  // First and second derivative of f~ along v_c + alpha dv_c.
  static LineSlope LinearizedAlongLine(const Parameters& p, const LawVector<kRows>& v_c,
                                       const LawVector<kRows>& dv_c, const DualDirection& s,
                                       double alpha) {
    const Point start = At(p, v_c);
    LawVector<kRows> moved = v_c;
    for (int row = 0; row < kRows; ++row) moved[row] += alpha * dv_c[row];
    const Point point = At(p, moved);
    const Slip dv_t{dv_c[0], dv_c[1]};
    const double dz = ChangeOfZ(p, start, dv_c);
    const double z = start.z + alpha * dz;
    const double bound = DualBound(p, start, s);
    const double along_slip = Dot(point.t, dv_t);
    return {bound * (along_slip - Dot(start.t, dv_t)) - p.NormalImpulse(z) * dz,
            bound / point.E * (Dot(dv_t, dv_t) - along_slip * along_slip) +
                p.NormalCurvature(z) * dz * dz};
  }

  // Derivatives with respect to mu, P, K, d, the bound mu n_0 of a lagged contact, and eps.
  using Sensitivity = LawSensitivity<kRows, 6>;
  static Sensitivity SensitivityAt(const Parameters& p, const LawVector<kRows>& v_c) {
    const Point point = At(p, v_c);
    const double soft_speed = SoftSpeed(p, v_c, point);
    Sensitivity s;
    const bool closed = point.z < p.opening_velocity;
    const double z =
        closed ? point.z : (std::isfinite(p.opening_velocity) ? p.opening_velocity : 0);
    const double q = 1 - p.d * z;
    const double f = p.elastic_impulse - p.normal_stiffness * z;
    const std::array<double, 3> n_theta{q, -z * q, -z * f};
    const std::array<double, 3> N_theta{
        z - 0.5 * p.d * z * z, -0.5 * z * z + p.d * z * z * z / 3,
        -0.5 * z * z * (p.elastic_impulse - 2.0 / 3.0 * p.normal_stiffness * z)};
    for (int k = 0; k < 3; ++k) {
      s.cost[1 + k] = -N_theta[k];
      if (!closed) continue;
      s.impulse[1 + k][2] = n_theta[k];
      if (!kIsLagged) AddScaled(-p.mu * n_theta[k], point.t, &s.impulse[1 + k]);
    }
    const double soft_by_eps = p.eps / point.E - 1;
    AddScaled(point.friction_bound * p.eps / (point.E * point.E), point.t, &s.impulse[5]);
    if (kIsLagged) {
      AddScaled(-1, point.t, &s.impulse[4]);
      s.cost[4] = soft_speed;
      s.cost[5] = p.lagged_bound * soft_by_eps;
      return s;
    }
    const double n = point.gamma[2];
    AddScaled(-n, point.t, &s.impulse[0]);
    AddAlongZ(p, point, -soft_speed, &s.impulse[0]);
    AddAlongZ(p, point, -p.mu * soft_by_eps, &s.impulse[5]);
    s.cost[0] = n * soft_speed;
    s.cost[5] = n * p.mu * soft_by_eps;
    return s;
  }

  // Distance from the velocity at which the contact opens, and of eps from its other branch where
  // there is friction.
  static double KinkMargin(const Parameters& p, const LawVector<kRows>& v_c,
                           const KinkScales& scales) {
    const Point point = At(p, v_c);
    const double opening = RelativeDistance(point.z, p.opening_velocity);
    return point.friction_bound > 0 ? std::min(opening, scales.regularization) : opening;
  }

  // Whether there is friction: it is regularized, so that the contact slides, if slowly.
  static bool IsKinked(const Parameters&, const Point& point) { return point.friction_bound > 0; }

  static DualDirection StartDirection(const Parameters&, const Point& point) {
    DualDirection s{point.t[0], point.t[1]};
    if constexpr (!kIsLagged) s.back() = point.z;
    return s;
  }
  static void UpdateDirection(const Parameters& p, const Point& point, const LawVector<kRows>& dv_c,
                              DualDirection* s) {
    Slip slip{(*s)[0], (*s)[1]};
    StepDualDirection(point.t, point.E, Slip{dv_c[0], dv_c[1]}, &slip);
    std::copy(slip.begin(), slip.end(), s->begin());
    if constexpr (!kIsLagged) {
      const bool closed = point.z < p.opening_velocity;
      s->back() = closed ? point.z + ChangeOfZ(p, point, dv_c) : point.z;
    }
  }

  // Bound on the error of the impulse by rounding errors of v_c of at most `error`. n' is largest
  // at the lower end of the interval of z; t changes by at most the error over the least E of the
  // interval.
  static LawVector<kRows> ImpulseError(const Parameters& p, const Point& point,
                                       const LawVector<kRows>&, const LawVector<kRows>& error) {
    const double v_t_error = error[0] + error[1];
    const double t_error = std::min(2.0, v_t_error / std::max(point.E - v_t_error, p.eps));
    const double z_error = kIsLagged ? error[2] : error[2] + p.mu * v_t_error;
    const double normal = p.NormalCurvature(point.z - z_error) * z_error;
    const double friction = point.friction_bound * t_error + (kIsLagged ? 0 : p.mu * normal);
    return {friction, friction, normal};
  }

 private:
  static LawMatrix<kRows> HessianOf(const Parameters& p, const Point& point, const Slip& s,
                                    double friction_bound, double normal_curvature) {
    const double G_perp = friction_bound / point.E;
    // The n of a lagged contact does not depend on v_t.
    const double G_tn = kIsLagged ? 0 : -p.mu * normal_curvature;
    LawMatrix<kRows> G;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j <= i; ++j) {
        const double along_slip = -p.mu * G_tn * point.t[i] * point.t[j];
        G(i, j) = G(j, i) = G_perp * DualCurvature(s, point.t, i, j) + along_slip;
      }
      G(i, 2) = G(2, i) = G_tn * point.t[i];
    }
    G(2, 2) = normal_curvature;
    return G;
  }
  // m by the dual direction.
  static double DualBound(const Parameters& p, const Point& point, const DualDirection& s) {
    if constexpr (kIsLagged) return point.friction_bound;
    return p.mu * p.NormalImpulse(s.back());
  }
  // dz.
  static double ChangeOfZ(const Parameters& p, const Point& point, const LawVector<kRows>& dv_c) {
    return dv_c[2] - p.mu * Dot(point.t, Slip{dv_c[0], dv_c[1]});
  }
  static double SoftSpeed(const Parameters& p, const LawVector<kRows>& v_c, const Point& point) {
    const Slip v_t{v_c[0] + p.offset[0], v_c[1] + p.offset[1]};
    return Dot(v_t, v_t) / (point.E + p.eps);
  }
  static void AddScaled(double factor, const Slip& t, LawVector<kRows>* gamma) {
    (*gamma)[0] += factor * t[0];
    (*gamma)[1] += factor * t[1];
  }
  // Adds the change of the impulse of a similar contact by a change of z.
  static void AddAlongZ(const Parameters& p, const Point& point, double dz,
                        LawVector<kRows>* gamma) {
    const double dn = -point.normal_curvature * dz;
    (*gamma)[2] += dn;
    AddScaled(-p.mu * dn, point.t, gamma);
  }
};

using LaggedHuntCrossley = HuntCrossley<true>;
using SimilarHuntCrossley = HuntCrossley<false>;

}  // namespace sap
