// Exact Coulomb friction in a contact of general_cone.h, and the two convex laws whose fixed points
// it is.
//
// The convex law lets a sliding contact drift apart with v_n = mu |v_t|, because its friction
// pulls on the normal (G_nt is not 0). The exact law takes the same v_hat, R and c, and sticks the
// same:
//
//   p_n = max(0, e_n / R_n),   q = min(p_n, E / rho),   gamma_j = mu_j q t_j,   gamma_n = p_n - c
//
// with e, E, t, rho and e_n as there. It has no cost, since its derivative is not symmetric:
//
//   G_nn = 1 / R_n where p_n > 0,   G_nt = 0
//   stick   G_tt = D^2 / rho                       G_tn = 0
//   slide   G_tt = (p_n / E) D (1 - t t') D        G_tn = D t / R_n where p_n > 0
//
// Two families of convex laws meet it at a fixed point:
//
//   lagged    q = min(n_0, E / rho) with a given bound n_0: Huber's friction and a spring along the
//             normal. Exact where n_0 = p_n.
//   shifted   the convex law with v_hat_n - s in place of v_hat_n [De Saxce, Feng 1998]. Exact
//             where s = E - rho q: 0 where it sticks, E where it is open.
//
// The lagged law has G_tn = 0 and else the G of the exact one: what is kept of the exact derivative
// for a symmetric matrix. Its cost, with which f is convex and gamma = -df/dv_c:
//
//   f = rho q^2 / 2 + q max(0, E - rho q) + R_n gamma_n^2 / 2 + c (R_n p_n - e_n)
//
// The exact law reports this cost with n_0 = p_n, which its answer minimizes with n_0 held.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "solver/laws/general_cone.h"

namespace sap {

enum class CoulombLaw : uint8_t {
  kConvex,   // the cone itself
  kShifted,  // value: s [m/s]
  kLagged,   // value: n_0 [N s]
  kExact,    // no value
};

template <int kNumRows>
struct CoulombCone {
  using Cone = GeneralCone<kNumRows>;
  static constexpr int kRows = kNumRows;
  static constexpr int kNormal = Cone::kNormal;
  static constexpr int kAxes = Cone::kAxes;
  using Inputs = ConeInputs;
  using DualDirection = typename Cone::DualDirection;

  struct Parameters {
    typename Cone::Parameters cone;
    CoulombLaw law{CoulombLaw::kConvex};
    double value{0};
    double next{0};  // value of the next round

    // The cone of the convex laws.
    typename Cone::Parameters Shifted() const {
      typename Cone::Parameters shifted = cone;
      if (law == CoulombLaw::kShifted) shifted.v_hat[kNormal] -= value;
      return shifted;
    }
    bool is_cone() const { return law == CoulombLaw::kConvex || law == CoulombLaw::kShifted; }
  };

  // The region of the exact and the lagged law is that of friction alone: kStick or kSlide.
  struct Point : Cone::Point {
    double q;  // friction over D t [N s]
  };

  static Point At(const Parameters& p, const LawVector<kRows>& v_c) {
    if (p.is_cone()) {
      const auto of_cone = Cone::At(p.Shifted(), v_c);
      const bool sticks = of_cone.region == ConeRegion::kStick;
      return {of_cone, sticks ? of_cone.E * p.cone.inv_rho : of_cone.p_n};
    }
    const auto& cone = p.cone;
    Point point;
    Cone::SetSlip(cone, v_c, &point);
    const double c = cone.adhesion_impulse;
    const double e_n = cone.v_hat[kNormal] - v_c[kNormal] + cone.R_n * c;
    point.p_n = std::max(e_n, 0.0) * cone.inv_R_n;
    const double bound = Bound(p, point);
    const bool sticks = bound > 0 && point.E <= cone.rho * bound;
    point.region = sticks ? ConeRegion::kStick : ConeRegion::kSlide;
    point.q = sticks ? point.E * cone.inv_rho : bound;
    for (int axis = 0; axis < kAxes; ++axis) {
      point.gamma[Cone::RowOf(axis)] = cone.mu[Cone::RowOf(axis)] * point.q * point.t[axis];
    }
    const double gamma_n = point.p_n - c;
    point.gamma[kNormal] = gamma_n;
    const double beyond_stick = sticks ? 0 : point.E - cone.rho * point.q;
    point.cost = 0.5 * (cone.rho * point.q * point.q + cone.R_n * gamma_n * gamma_n) +
                 point.q * beyond_stick + c * std::max(-e_n, 0.0);
    return point;
  }

  // The n_0 and the s with which the lagged and the shifted law have the impulse of the point.
  static double NextBound(const Point& point) { return point.p_n; }
  static double NextShift(const Parameters& p, const Point& point) {
    return std::max(0.0, point.E - p.cone.rho * point.q);
  }

  // G without G_tn where the law is exact.
  static LawMatrix<kRows> Hessian(const Parameters& p, const Point& point) {
    return Hessian(p, point, point.t);
  }
  static LawMatrix<kRows> Hessian(const Parameters& p, const Point& point, const DualDirection& s) {
    if (p.is_cone()) return Cone::Hessian(p.cone, point, s);
    LawMatrix<kRows> G;
    const bool sticks = point.region == ConeRegion::kStick;
    const double across = sticks ? p.cone.inv_rho : (point.E > 0 ? point.q / point.E : 0);
    for (int i = 0; i < kAxes; ++i) {
      const int row = Cone::RowOf(i);
      for (int j = 0; j <= i; ++j) {
        const int column = Cone::RowOf(j);
        const double curvature = sticks ? (i == j ? 1.0 : 0.0) : DualCurvature(s, point.t, i, j);
        G(row, column) = G(column, row) = p.cone.mu[row] * p.cone.mu[column] * across * curvature;
      }
    }
    G(kNormal, kNormal) = point.p_n > 0 ? p.cone.inv_R_n : 0;
    return G;
  }

  // G_tn of the exact law, with 0 in the row of the normal.
  static LawVector<kRows> Coupling(const Parameters& p, const Point& point) {
    LawVector<kRows> coupling{};
    if (point.region != ConeRegion::kSlide || !(point.p_n > 0)) return coupling;
    for (int axis = 0; axis < kAxes; ++axis) {
      const int row = Cone::RowOf(axis);
      coupling[row] = p.cone.mu[row] * point.t[axis] * p.cone.inv_R_n;
    }
    return coupling;
  }

  static bool IsKinked(const Parameters& p, const Point& point) {
    if (p.is_cone()) return Cone::IsKinked(p.cone, point);
    constexpr double kRounding = 5e-10;
    if (!(p.cone.rho > 0 && point.q > 0)) return false;
    return point.region == ConeRegion::kSlide || Bound(p, point) * (1 - kRounding) <= point.q;
  }

  static DualDirection StartDirection(const Parameters& p, const Point& point) {
    if (p.is_cone()) return Cone::StartDirection(p.cone, point);
    if (point.region == ConeRegion::kSlide) return point.t;
    return Cone::StickDirection(point.e, p.cone.rho * Bound(p, point));
  }
  static void UpdateDirection(const Parameters& p, const Point& point, const LawVector<kRows>& dv_c,
                              DualDirection* s) {
    if (p.is_cone()) return Cone::UpdateDirection(p.cone, point, dv_c, s);
    DualDirection de = Cone::ChangeOfSlip(p.cone, dv_c);
    if (point.region == ConeRegion::kSlide) {
      StepDualDirection(point.t, point.E, de, s);
      return;
    }
    for (int axis = 0; axis < kAxes; ++axis) de[axis] += point.e[axis];
    *s = Cone::StickDirection(de, p.cone.rho * Bound(p, point));
  }

  // Bound on the error of the impulse by rounding errors of v_c of at most `error`, for any of the
  // laws: q t is the projection of e / rho on the ball of radius p_n.
  static LawVector<kRows> ImpulseError(const Parameters& p, const Point&, const LawVector<kRows>&,
                                       const LawVector<kRows>& error) {
    const double e_error = Cone::SlipError(p.cone, error);
    const double normal = p.cone.inv_R_n * error[kNormal];
    LawVector<kRows> impulse_error;
    for (int row = 0; row < kRows; ++row) {
      impulse_error[row] = p.cone.mu[row] * (p.cone.inv_rho * e_error + normal);
    }
    impulse_error[kNormal] = normal + p.cone.kappa * e_error;
    return impulse_error;
  }

 private:
  // Bound of q.
  static double Bound(const Parameters& p, const Point& point) {
    return p.law == CoulombLaw::kLagged ? p.value : point.p_n;
  }
};

}  // namespace sap
