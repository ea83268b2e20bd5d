// The laws of a constraint row: an impulse proportional to the velocity error, within bounds.
//
//   y = (v_hat - v_c) / R,   gamma = min(max(y, lower), upper),   f = R gamma (y - gamma / 2)
//   G = 1 / R where lower < y < upper, else 0
//
// f is convex and continuously differentiable, and can be negative. A row without bounds has a
// quadratic cost: its G never changes. With one bound it is a limit, with two dry friction or a
// motor of limited force. lower = upper is a constant impulse.
//
// Dual direction s of a row with two bounds, with h = (upper - lower) / 2 > 0,
// e = v_hat - v_c - R (lower + upper) / 2 and t = sign e, as for the friction cone:
//
//   saturated  G = (h / |e|) (1 - s t)     s + ds = t + de (1 - s t) / |e|,   de = -dv_c
//   inside     G = 1 / R                   s + ds = (e + de) / (R h)
//
// then brought back to [-1, 1]. |e| >= R h where the row is saturated, so G <= 2 / R.
//
// Derivatives at fixed v_c: inside d gamma/dR = -gamma / R; at a bound d gamma/d bound = 1 and
// df/d bound = R (y - bound). df/dR = -gamma^2 / 2 everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/laws/regularization.h"

namespace sap {

// Target and R of a row, the parameters that both laws of rows begin with.
struct RowTarget {
  double v_hat, R;
  double target_size;

  // Parameter 0 is the target v_hat - b + R dt u, parameter 1 is R.
  static RowTarget Make(const RowInputs& in, auto& d, auto& partials) {
    constexpr int kTarget = 0, kR = 1;
    const double target_by_R = in.shared.time_step * in.force_offset;
    const double R = RowRegularization(in);
    partials(kTarget, d.v_hat, 1.0);
    partials(kTarget, d.offset, -1.0);
    partials(kTarget, d.force_offset, R * in.shared.time_step);
    partials(kTarget, d.shared.time_step, R * in.force_offset);
    RowRegularization(
        in, d,
        [&](auto& input, double partial) {
          partials(kR, input, partial);
          partials(kTarget, input, partial * target_by_R);
        },
        partials);
    return {in.v_hat - in.offset + R * target_by_R, R,
            std::abs(in.v_hat) + std::abs(in.offset) + R * std::abs(target_by_R)};
  }
};

struct BilateralRow {
  static constexpr int kRows = 1;
  static constexpr bool kIsQuadratic = true;
  using Inputs = RowInputs;
  using DualDirection = std::array<double, 0>;

  struct Parameters {
    double v_hat;     // less the offset of the velocity, and with the feed-forward [m/s, rad/s]
    double R, inv_R;  // [1/kg], [kg]
    LawVector<1> target_size;  // |v_hat| + |b| + R dt |u| before they are added up

    static Parameters Make(double v_hat, double R) { return {v_hat, R, 1 / R, {std::abs(v_hat)}}; }
    bool HasNonNegativeCost() const { return true; }
    bool IsRepresentable() const {
      return R > 0 && std::isfinite(R) && std::isfinite(inv_R) && std::isfinite(v_hat);
    }
  };
  static Parameters Make(const RowInputs& in, auto& d, auto&& partials) {
    const RowTarget target = RowTarget::Make(in, d, partials);
    Parameters p = Parameters::Make(target.v_hat, target.R);
    p.target_size = {target.target_size};
    return p;
  }

  struct Point {
    LawVector<1> gamma;
    double cost;
  };

  static Point At(const Parameters& p, const LawVector<1>& v_c) {
    const double gamma = (p.v_hat - v_c[0]) * p.inv_R;
    return {{gamma}, 0.5 * p.R * gamma * gamma};
  }
  static LawMatrix<1> Hessian(const Parameters& p, const Point&) { return {{p.inv_R}}; }
  static LawMatrix<1> Hessian(const Parameters& p, const Point&, const DualDirection&) {
    return {{p.inv_R}};
  }
  // Derivatives with respect to R.
  using Sensitivity = LawSensitivity<1, 1>;
  static Sensitivity SensitivityAt(const Parameters& p, const LawVector<1>& v_c) {
    const double gamma = At(p, v_c).gamma[0];
    return {.impulse = {{{-gamma * p.inv_R}}}, .cost = {-0.5 * gamma * gamma}};
  }
  static double KinkMargin(const Parameters&, const LawVector<1>&, const KinkScales& scales) {
    return scales.regularization;
  }
  static bool IsKinked(const Parameters&, const Point&) { return false; }
  static DualDirection StartDirection(const Parameters&, const Point&) { return {}; }
  static void UpdateDirection(const Parameters&, const Point&, const LawVector<1>&,
                              DualDirection*) {}
  // Bound on the error of the impulse by rounding errors of v_c of at most `error`.
  static LawVector<1> ImpulseError(const Parameters& p, const Point&, const LawVector<1>&,
                                   const LawVector<1>& error) {
    return {p.inv_R * error[0]};
  }
};

struct BoundedRow {
  static constexpr int kRows = 1;
  using Inputs = RowInputs;
  using DualDirection = std::array<double, 1>;

  struct Parameters {
    double v_hat;              // as in BilateralRow
    double R, inv_R;           // [1/kg], [kg]
    double lower, upper;       // one of them may be infinite [N s]
    LawVector<1> target_size;  // as in BilateralRow

    static Parameters Make(double v_hat, double R, double lower, double upper) {
      return {v_hat, R, 1 / R, lower, upper, {std::abs(v_hat)}};
    }
    bool HasNonNegativeCost() const { return lower <= 0 && upper >= 0; }
    bool IsRepresentable() const {
      return R > 0 && std::isfinite(R) && std::isfinite(inv_R) && std::isfinite(v_hat);
    }
    bool has_dual_direction() const {
      return upper - lower > kLeastSize && std::isfinite(upper - lower);
    }
  };
  static Parameters Make(const RowInputs& in, auto& d, auto&& partials) {
    constexpr int kLower = 2, kUpper = 3;
    const double dt = in.shared.time_step;
    const RowTarget target = RowTarget::Make(in, d, partials);
    const auto bound = [&](int parameter, double force, auto& d_force) {
      if (std::isfinite(force)) {
        partials(parameter, d_force, dt);
        partials(parameter, d.shared.time_step, force);
      }
      return dt * force;
    };
    const double lower = bound(kLower, in.force_lower, d.force_lower);
    const double upper = bound(kUpper, in.force_upper, d.force_upper);
    Parameters p = Parameters::Make(target.v_hat, target.R, lower, upper);
    p.target_size = {target.target_size};
    return p;
  }

  struct Point {
    LawVector<1> gamma;
    double cost;
    double y;

    bool IsInside(const Parameters& p) const { return p.lower < y && y < p.upper; }
  };

  static Point At(const Parameters& p, const LawVector<1>& v_c) {
    const double y = (p.v_hat - v_c[0]) * p.inv_R;
    const double gamma = std::min(std::max(y, p.lower), p.upper);
    return {{gamma}, p.R * gamma * (y - 0.5 * gamma), y};
  }
  static LawMatrix<1> Hessian(const Parameters& p, const Point& point) {
    return {{point.IsInside(p) ? p.inv_R : 0.0}};
  }
  static LawMatrix<1> Hessian(const Parameters& p, const Point& point, const DualDirection& s) {
    if (point.IsInside(p) || !p.has_dual_direction()) return Hessian(p, point);
    return {{HalfWidth(p) / SaturatedError(p, point) * (1 - s[0] * Side(p, point))}};
  }
  // Derivatives with respect to R, lower and upper. Where the bounds are equal both of them move
  // the impulse, so the side counts on which y lies.
  using Sensitivity = LawSensitivity<1, 3>;
  static Sensitivity SensitivityAt(const Parameters& p, const LawVector<1>& v_c) {
    const Point point = At(p, v_c);
    const double gamma = point.gamma[0];
    Sensitivity s;
    s.cost[0] = -0.5 * gamma * gamma;
    if (point.IsInside(p)) {
      s.impulse[0][0] = -gamma * p.inv_R;
    } else {
      const int bound = point.y >= p.upper ? 2 : 1;
      s.impulse[bound][0] = 1;
      s.cost[bound] = p.R * (point.y - gamma);
    }
    return s;
  }
  // Distance of y from the bounds, where these differ, and inside of R from its other branch.
  static double KinkMargin(const Parameters& p, const LawVector<1>& v_c, const KinkScales& scales) {
    if (p.lower == p.upper) return 1;
    const Point point = At(p, v_c);
    const double margin =
        std::min(RelativeDistance(point.y, p.lower), RelativeDistance(point.y, p.upper));
    return point.IsInside(p) ? std::min(margin, scales.regularization) : margin;
  }
  // Whether the row is at one of two bounds.
  static bool IsKinked(const Parameters& p, const Point& point) {
    return p.has_dual_direction() && !point.IsInside(p);
  }
  static DualDirection StartDirection(const Parameters& p, const Point& point) {
    if (!p.has_dual_direction()) return {0.0};
    return {std::clamp((point.gamma[0] - Middle(p)) / HalfWidth(p), -1.0, 1.0)};
  }
  static void UpdateDirection(const Parameters& p, const Point& point, const LawVector<1>& dv_c,
                              DualDirection* s) {
    if (!p.has_dual_direction()) return;
    double next;
    if (point.IsInside(p)) {
      next = (ErrorFromMiddle(p, point) - dv_c[0]) / std::max(p.R * HalfWidth(p), kLeastError);
    } else {
      const double t = Side(p, point);
      next = t - dv_c[0] * (1 - (*s)[0] * t) / SaturatedError(p, point);
    }
    (*s)[0] = std::clamp(next, -1.0, 1.0);
  }
  static LawVector<1> ImpulseError(const Parameters& p, const Point&, const LawVector<1>&,
                                   const LawVector<1>& error) {
    return {p.lower == p.upper ? 0.0 : p.inv_R * error[0]};
  }

 private:
  // Errors below have infinite inverses.
  static constexpr double kLeastError = std::numeric_limits<double>::min();

  static double Middle(const Parameters& p) { return 0.5 * (p.lower + p.upper); }
  static double HalfWidth(const Parameters& p) { return 0.5 * (p.upper - p.lower); }
  static double ErrorFromMiddle(const Parameters& p, const Point& point) {
    return p.R * (point.y - Middle(p));
  }
  // t and |e| of a saturated row. Where the bounds differ by little of their size, rounding neither
  // takes |e| below R h nor e to the other side.
  static double Side(const Parameters& p, const Point& point) {
    return point.y >= p.upper ? 1 : -1;
  }
  static double SaturatedError(const Parameters& p, const Point& point) {
    return std::max({std::abs(ErrorFromMiddle(p, point)), p.R * HalfWidth(p), kLeastError});
  }
};

}  // namespace sap
