// The law of a contact with friction along its tangents and about its axes, each with a coefficient
// of its own, and with adhesion c = dt a [N s].
//
//   gamma = p - c e_n,   p = argmin_{g in F} 1/2 (g - y)' R (g - y)
//   F = { sum_j (g_j / mu_j)^2 <= g_n^2, g_n >= 0 },   y = R^-1 (v_hat - v_c) + c e_n
//   R_j = rho / mu_j^2,   rho = R_t mu_1^2
//
// One rho for all axes makes the projection closed-form: in scaled velocities
// e_j = mu_j (v_hat_j - v_j), e_n = v_hat_n - v_n + R_n c, with E = |e|, t = e / E,
// kappa = 1 / (R_n + rho), D = diag(mu_j) and p_j = mu_j q_j:
//
//   open    e_n + E <= 0               p_n = 0                   q = 0
//   stick   R_n E <= rho e_n, not open p_n = e_n / R_n           q = e / rho
//   slide   else                       p_n = kappa (e_n + E)     q = p_n t
//
//   f = (rho |q|^2 + R_n p_n^2) / 2 - c e_n + R_n c^2 / 2
//     = (rho |q|^2 + R_n gamma_n^2) / 2 + c (R_n p_n - e_n)
//
// The second form is the one computed: none of its terms is negative. gamma is continuous;
// G = -d gamma / d v_c, symmetric positive semidefinite with G <= R^-1, jumps between regions:
//
//   open    G = 0
//   stick   G = R^-1
//   slide   G_tt = D [(p_n / E)(1 - (s t' + t s') / 2) + kappa t t'] D,   p_n / E <= 1 / rho
//           G_tn = kappa D t,   G_nn = kappa
//
// with s = t; the accelerated method has the dual direction in its place (dual_direction.h), with
// which 0 <= G <= 3 R^-1. It changes on a full Newton step as
//
//   open    0
//   stick   (e + de) / (rho max(p_n - dv_n / R_n, 0.3 p_n)),   de_j = -mu_j dv_j
//   slide   t + (de - s t'de) / E
//
// then is brought back to the unit ball. mu_j = 0 takes no division: e_j = 0, and the axis carries
// no impulse. Where all are 0 the contact sticks or is open, with gamma_n = max(y_n, 0) - c.
//
// Derivatives at fixed v_c, with d = v_hat - v_c and phi the first term of f, for which
// phi_e = q, phi_en = p_n, phi_rho = -|q|^2 / 2, phi_Rn = -p_n^2 / 2:
//
//   stick   q = e / rho       dq/de = 1 / rho                           dq/drho = -q / rho
//           p_n = e_n / R_n   dp_n/dR_n = -(p_n - c) / R_n              dp_n/dc = 1
//   slide   q = p_n t         dq/de = kappa tt' + (p_n / E)(1 - tt')    dq/drho = -kappa p_n t
//           dp_n/de = kappa t, dp_n/drho = -kappa p_n, dp_n/dR_n = -kappa (p_n - c),
//           dp_n/dc = kappa R_n
//
// chained by e_j = mu_j d_j, gamma_j = mu_j q_j and rho = R_t mu_1^2. A coefficient of 0 among
// others has no derivative, because gamma is quadratic in it. Where all are 0 the contact is at a
// kink in friction: mu_1 then stands for both tangents, which raises it from 0 with
// t = d_t / |d_t|.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "solver/laws/dual_direction.h"
#include "solver/laws/regularization.h"

namespace sap {

enum class ConeRegion : uint8_t { kOpen, kStick, kSlide };

// The parameters by which a cone is differentiated. Rows (t1, t2, n), then the relative angular
// velocity: (spin) of 4 rows, about (t1, t2, n) of 6.
template <int kRows>
struct ConeTerms {
  double R_t{0}, R_n{0};           // [1/kg]; R_t is that of the first axis
  LawVector<kRows> mu{};           // [-, m]; that of the normal is not read
  LawVector<kRows> v_hat{};        // less the velocity of the surface [m/s, rad/s]
  LawVector<kRows> target_size{};  // |v_hat| + |b|, the sizes of its parts
  double adhesion_impulse{0};      // c [N s]

  // Parameters v_hat, R_t, R_n, c, mu_j.
  static ConeTerms Make(const ConeInputs& in, auto& d, auto& partials) {
    constexpr int kR_t = kRows, kR_n = kRows + 1, kAdhesion = kRows + 2, kMu = kRows + 3;
    const double dt = in.shared.time_step;
    ConeTerms cone{.mu = {in.mu, in.mu_2, 1.0}, .adhesion_impulse = dt * in.adhesion};
    for (int row = 0; row < 3; ++row) {
      cone.v_hat[row] = in.v_hat[row] - in.surface_velocity[row];
      cone.target_size[row] = std::abs(in.v_hat[row]) + std::abs(in.surface_velocity[row]);
      partials(row, d.surface_velocity[row], -1.0);
      partials(row, d.v_hat[row], 1.0);
    }
    partials(kMu, d.mu, 1.0);
    partials(kMu + 1, d.mu_2, 1.0);
    partials(kAdhesion, d.adhesion, dt);
    partials(kAdhesion, d.shared.time_step, in.adhesion);
    for (int row = 3; row < kRows; ++row) {
      const int axis = row - kRows + 3;
      cone.v_hat[row] = in.angular_v_hat[axis];
      cone.target_size[row] = std::abs(in.angular_v_hat[axis]);
      cone.mu[row] = in.angular_friction[axis];
      partials(row, d.angular_v_hat[axis], 1.0);
      partials(kMu + row - 1, d.angular_friction[axis], 1.0);
    }
    cone.R_t = TangentialRegularization(in, kR_t, d, partials);
    cone.R_n = NormalRegularization(in, kR_n, d, partials);
    return cone;
  }
};

template <int kNumRows>
struct GeneralCone {
  static_assert(kNumRows == 3 || kNumRows == 4 || kNumRows == 6);
  static constexpr int kRows = kNumRows;
  static constexpr int kAxes = kRows - 1;  // of friction
  static constexpr int kNormal = 2;
  static constexpr int RowOf(int axis) { return axis < kNormal ? axis : axis + 1; }
  using Inputs = ConeInputs;
  using DualDirection = std::array<double, kAxes>;

  struct Parameters {
    LawVector<kRows> v_hat;   // less the offset of the velocity [m/s, rad/s]
    LawVector<kRows> mu;      // [-, m]; 1 in the row of the normal
    double rho, inv_rho;      // [1/kg], [kg]; both 0 without friction
    double R_n, inv_R_n;      // [1/kg], [kg]
    double kappa;             // [kg]
    double adhesion_impulse;  // c [N s]
    // Sizes of what the velocities are subtracted from, part by part: |v_hat|, |b|, R_n c.
    LawVector<kRows> target_size{};

    // R_t is that of the first axis. mu[kNormal] is not read.
    static Parameters Make(double R_t, double R_n, const LawVector<kRows>& mu,
                           const LawVector<kRows>& v_hat, double adhesion_impulse) {
      const double rho = R_t * mu[0] * mu[0];
      Parameters p{.v_hat = v_hat,
                   .mu = mu,
                   .rho = rho,
                   .inv_rho = rho > 0 ? 1 / rho : 0,
                   .R_n = R_n,
                   .inv_R_n = 1 / R_n,
                   .kappa = 1 / (R_n + rho),
                   .adhesion_impulse = adhesion_impulse};
      p.mu[kNormal] = 1;
      return p;
    }
    bool IsRepresentable() const {
      bool is_finite = R_n > 0 && std::isfinite(inv_R_n) && std::isfinite(inv_rho) && kappa > 0 &&
                       std::isfinite(R_n * adhesion_impulse);
      for (int row = 0; row < kRows; ++row) is_finite &= std::isfinite(v_hat[row]);
      for (int axis = 0; axis < kAxes; ++axis) {
        const double mu_j = mu[RowOf(axis)];
        is_finite &= std::isfinite(mu_j * mu_j * inv_rho) && (rho > 0 || mu_j == 0);
      }
      return is_finite;
    }
    bool HasNonNegativeCost() const { return true; }
  };
  static Parameters Make(const ConeInputs& in, auto& d, auto&& partials) {
    const auto cone = ConeTerms<kRows>::Make(in, d, partials);
    Parameters p = Parameters::Make(cone.R_t, cone.R_n, cone.mu, cone.v_hat, cone.adhesion_impulse);
    p.target_size = cone.target_size;
    p.target_size[kNormal] += p.R_n * p.adhesion_impulse;
    return p;
  }

  struct Point {
    LawVector<kRows> gamma;
    double cost;
    std::array<double, kAxes> e, t;  // t = 0 where E <= kLeastSize
    double E;
    double p_n;
    ConeRegion region;
  };

  // e, E and t.
  static void SetSlip(const Parameters& p, const LawVector<kRows>& v_c, Point* point) {
    for (int axis = 0; axis < kAxes; ++axis) {
      const int row = RowOf(axis);
      point->e[axis] = p.mu[row] * (p.v_hat[row] - v_c[row]);
    }
    point->E = std::sqrt(Dot(point->e, point->e));
    const double inv_E = point->E > kLeastSize ? 1 / point->E : 0;
    for (int axis = 0; axis < kAxes; ++axis) point->t[axis] = point->e[axis] * inv_E;
  }

  static Point At(const Parameters& p, const LawVector<kRows>& v_c) {
    const double c = p.adhesion_impulse;
    Point point;
    SetSlip(p, v_c, &point);
    const double e_n = p.v_hat[kNormal] - v_c[kNormal] + p.R_n * c;
    double q_norm;            // |q|
    double normal_violation;  // R_n p_n - e_n
    if (e_n + point.E <= 0) {
      point.region = ConeRegion::kOpen;
      point.p_n = q_norm = 0;
      normal_violation = -e_n;
    } else if (p.R_n * point.E <= p.rho * e_n) {
      point.region = ConeRegion::kStick;
      point.p_n = e_n * p.inv_R_n;
      q_norm = point.E * p.inv_rho;
      normal_violation = 0;
    } else {
      point.region = ConeRegion::kSlide;
      point.p_n = q_norm = p.kappa * (e_n + point.E);
      normal_violation = p.kappa * (p.R_n * point.E - p.rho * e_n);
    }
    for (int axis = 0; axis < kAxes; ++axis) {
      point.gamma[RowOf(axis)] = p.mu[RowOf(axis)] * q_norm * point.t[axis];
    }
    const double gamma_n = point.p_n - c;
    point.gamma[kNormal] = gamma_n;
    point.cost = 0.5 * (p.rho * q_norm * q_norm + p.R_n * gamma_n * gamma_n) + c * normal_violation;
    return point;
  }

  static LawMatrix<kRows> Hessian(const Parameters& p, const Point& point) {
    return Hessian(p, point, point.t);
  }
  static LawMatrix<kRows> Hessian(const Parameters& p, const Point& point, const DualDirection& s) {
    LawMatrix<kRows> G;
    if (point.region == ConeRegion::kOpen) return G;
    if (point.region == ConeRegion::kStick) {
      for (int row = 0; row < kRows; ++row) G(row, row) = p.mu[row] * p.mu[row] * p.inv_rho;
      G(kNormal, kNormal) = p.inv_R_n;
      return G;
    }
    const double G_perp = point.p_n / point.E;
    for (int i = 0; i < kAxes; ++i) {
      const int row = RowOf(i);
      for (int j = 0; j <= i; ++j) {
        const double scaled =
            G_perp * DualCurvature(s, point.t, i, j) + p.kappa * point.t[i] * point.t[j];
        G(row, RowOf(j)) = G(RowOf(j), row) = p.mu[row] * p.mu[RowOf(j)] * scaled;
      }
      G(row, kNormal) = G(kNormal, row) = p.kappa * p.mu[row] * point.t[i];
    }
    G(kNormal, kNormal) = p.kappa;
    return G;
  }

  // Derivatives with respect to R_t, R_n, c and each mu_j, in this order, in the region of the
  // point. The one with respect to R_t is at mu held, as rho follows.
  static constexpr int kFirstCoefficient = 3;
  using Sensitivity = LawSensitivity<kRows, kFirstCoefficient + kAxes>;
  static Sensitivity SensitivityAt(const Parameters& p, const LawVector<kRows>& v_c,
                                   ConeRegion region) {
    Sensitivity s;
    const double c = p.adhesion_impulse;
    const double e_n = p.v_hat[kNormal] - v_c[kNormal] + p.R_n * c;
    if (region == ConeRegion::kOpen) {
      s.impulse[2][kNormal] = -1;
      s.cost[2] = -e_n;
      s.cost[1] = -0.5 * c * c;
      return s;
    }
    const bool sticks = region == ConeRegion::kStick && p.rho > 0;
    const Slip slip = SlipAt(p, v_c, e_n, sticks);
    const double along_R_n = sticks ? p.inv_R_n : p.kappa;  // -d p_n / d R_n over p_n - c
    s.impulse[1][kNormal] = -along_R_n * (slip.p_n - c);
    s.cost[1] = -0.5 * (slip.p_n - c) * (slip.p_n - c);
    s.impulse[2][kNormal] = sticks ? 0 : -p.kappa * p.rho;
    s.cost[2] = p.R_n * slip.p_n - e_n;
    LawVector<kRows> along_rho;  // of gamma
    for (int i = 0; i < kAxes; ++i) {
      along_rho[RowOf(i)] = -p.mu[RowOf(i)] * slip.q[i] * (sticks ? p.inv_rho : p.kappa);
    }
    along_rho[kNormal] = sticks ? 0 : -p.kappa * slip.p_n;
    if (!sticks) {
      for (int i = 0; i < kAxes; ++i) {
        s.impulse[1][RowOf(i)] = -p.mu[RowOf(i)] * p.kappa * (slip.p_n - c) * slip.t[i];
        s.impulse[2][RowOf(i)] = p.mu[RowOf(i)] * p.kappa * p.R_n * slip.t[i];
      }
    }
    AddCoefficients(p, slip, sticks, &s);
    const double rho_by_R_t = p.mu[0] * p.mu[0];
    const double rho_by_mu = p.mu[0] > 0 ? 2 * p.rho / p.mu[0] : 0;
    const double cost_rho = -0.5 * Dot(slip.q, slip.q);
    for (int row = 0; row < kRows; ++row) {
      s.impulse[0][row] = along_rho[row] * rho_by_R_t;
      s.impulse[kFirstCoefficient][row] += along_rho[row] * rho_by_mu;
    }
    s.cost[0] = cost_rho * rho_by_R_t;
    s.cost[kFirstCoefficient] += cost_rho * rho_by_mu;
    return s;
  }
  static Sensitivity SensitivityAt(const Parameters& p, const LawVector<kRows>& v_c) {
    return SensitivityAt(p, v_c, At(p, v_c).region);
  }

  // Distance from the kinks in [0, 1], with u = E, or the slip speed where nothing rubs:
  //
  //   |e_n + E| / (normal_speeds + R_n c + E)
  //   not open   |R_n E - rho e_n| / (R_n E + rho |e_n|), or u / (normal_speeds + R_n c + u)
  static double KinkMargin(const Parameters& p, const LawVector<kRows>& v_c, ConeRegion region,
                           const KinkScales& scales) {
    const double adhesion = p.R_n * p.adhesion_impulse;
    const double e_n = p.v_hat[kNormal] - v_c[kNormal] + adhesion;
    const Slip slip = SlipAt(p, v_c, e_n, false);
    const double size = scales.normal_speeds + adhesion + slip.E;
    const double opening = size > 0 ? std::min(std::abs(e_n + slip.E) / size, 1.0) : 0;
    if (region == ConeRegion::kOpen) return opening;
    double sliding;
    if (p.rho > 0) {
      sliding = RelativeDistance(p.R_n * slip.E, p.rho * e_n);
    } else {
      sliding = slip.speed > 0 ? slip.speed / (size + slip.speed) : 0;
    }
    return std::min({opening, sliding, scales.regularization});
  }
  static double KinkMargin(const Parameters& p, const LawVector<kRows>& v_c,
                           const KinkScales& scales) {
    return KinkMargin(p, v_c, At(p, v_c).region, scales);
  }

  // Whether p lies on the surface of its cone, which means that the contact slides.
  static bool IsKinked(const Parameters& p, const Point& point) {
    constexpr double kRounding = 5e-10;
    if (!(p.rho > 0 && point.p_n > 0)) return false;
    return point.region == ConeRegion::kSlide || point.E * p.inv_rho >= point.p_n * (1 - kRounding);
  }

  static DualDirection StartDirection(const Parameters& p, const Point& point) {
    if (point.region == ConeRegion::kSlide) return point.t;
    return StickDirection(point.e, p.rho * point.p_n);
  }
  static void UpdateDirection(const Parameters& p, const Point& point, const LawVector<kRows>& dv_c,
                              DualDirection* s) {
    DualDirection de = ChangeOfSlip(p, dv_c);
    if (point.region == ConeRegion::kSlide) {
      StepDualDirection(point.t, point.E, de, s);
      return;
    }
    for (int axis = 0; axis < kAxes; ++axis) de[axis] += point.e[axis];
    const double p_n = std::max(point.p_n - dv_c[kNormal] * p.inv_R_n, 0.3 * point.p_n);
    const bool is_open = point.region == ConeRegion::kOpen;
    *s = is_open ? DualDirection{} : StickDirection(de, p.rho * p_n);
  }
  // de.
  static DualDirection ChangeOfSlip(const Parameters& p, const LawVector<kRows>& dv_c) {
    DualDirection de;
    for (int axis = 0; axis < kAxes; ++axis) de[axis] = -p.mu[RowOf(axis)] * dv_c[RowOf(axis)];
    return de;
  }
  // e over the bound of |e| within which the contact sticks, in the unit ball; 0 where the bound is
  // at most kLeastSize.
  static DualDirection StickDirection(const DualDirection& e, double bound) {
    DualDirection s{};
    if (!(bound > kLeastSize)) return s;
    for (int axis = 0; axis < kAxes; ++axis) s[axis] = e[axis] / bound;
    BringIntoUnitBall(&s);
    return s;
  }

  // Bound on the error of the impulse by rounding errors of v_c of at most `error`.
  // G_tt <= D^2 / rho, |G_tn| <= kappa D and G_nn <= 1 / R_n hold in all regions.
  static LawVector<kRows> ImpulseError(const Parameters& p, const Point&, const LawVector<kRows>&,
                                       const LawVector<kRows>& error) {
    const double e_error = SlipError(p, error);
    LawVector<kRows> impulse_error;
    for (int row = 0; row < kRows; ++row) {
      impulse_error[row] = p.mu[row] * (p.inv_rho * e_error + p.kappa * error[kNormal]);
    }
    impulse_error[kNormal] = p.inv_R_n * error[kNormal] + p.kappa * e_error;
    return impulse_error;
  }
  // Bound on the error of E.
  static double SlipError(const Parameters& p, const LawVector<kRows>& error) {
    double e_error = 0;
    for (int axis = 0; axis < kAxes; ++axis) e_error += p.mu[RowOf(axis)] * error[RowOf(axis)];
    return e_error;
  }

 private:
  // e, its direction and the impulse, for derivatives.
  struct Slip {
    std::array<double, kAxes> d, t, q;
    double E, p_n;
    double speed;  // |d_t| of the tangents
  };
  static Slip SlipAt(const Parameters& p, const LawVector<kRows>& v_c, double e_n, bool sticks) {
    Slip slip;
    std::array<double, kAxes> e;
    for (int axis = 0; axis < kAxes; ++axis) {
      slip.d[axis] = p.v_hat[RowOf(axis)] - v_c[RowOf(axis)];
      e[axis] = p.mu[RowOf(axis)] * slip.d[axis];
    }
    slip.E = std::sqrt(Dot(e, e));
    slip.speed = std::sqrt(slip.d[0] * slip.d[0] + slip.d[1] * slip.d[1]);
    slip.p_n = sticks ? e_n * p.inv_R_n : p.kappa * (e_n + slip.E);
    const double inv_E = slip.E > kLeastSize ? 1 / slip.E : 0;
    const double inv_speed = slip.speed > kLeastSize ? 1 / slip.speed : 0;
    for (int axis = 0; axis < kAxes; ++axis) {
      slip.t[axis] = e[axis] * inv_E;
      if (p.rho == 0) slip.t[axis] = axis < kNormal ? slip.d[axis] * inv_speed : 0;
      slip.q[axis] = sticks ? e[axis] * p.inv_rho : slip.p_n * slip.t[axis];
    }
    return slip;
  }

  // Derivatives with respect to the coefficients at rho held.
  static void AddCoefficients(const Parameters& p, const Slip& slip, bool sticks, Sensitivity* s) {
    if (p.rho == 0) {  // mu_1 for both tangents, from 0
      for (int i = 0; i < kNormal; ++i) s->impulse[kFirstCoefficient][RowOf(i)] = slip.q[i];
      s->impulse[kFirstCoefficient][kNormal] = p.kappa * slip.speed;
      s->cost[kFirstCoefficient] = slip.p_n * slip.speed;
      return;
    }
    const double across = sticks ? p.inv_rho : slip.p_n / slip.E;
    const double along = sticks ? 0 : p.kappa - across;
    for (int j = 0; j < kAxes; ++j) {
      LawVector<kRows>& column = s->impulse[kFirstCoefficient + j];
      for (int i = 0; i < kAxes; ++i) {
        const double q_e = (i == j ? across : 0) + along * slip.t[i] * slip.t[j];
        column[RowOf(i)] = p.mu[RowOf(i)] * q_e * slip.d[j];
      }
      column[RowOf(j)] += slip.q[j];
      column[kNormal] = sticks ? 0 : p.kappa * slip.t[j] * slip.d[j];
      s->cost[kFirstCoefficient + j] = slip.q[j] * slip.d[j];
    }
  }
};

}  // namespace sap
