// A row with bounds (bounded_row.h) and the barrier of its bounds:
//
//   R g = e + u_l - u_h,   (g - lo) u_l = m,   (hi - g) u_h = m,   e = v_hat - v_c
//
// A bound that is infinite has no u. Where the bounds are equal g is given, and the row has neither
// u nor stiffness. The slacks are carried along: g - lo is lost in rounding errors where it is
// small and lo is not 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/laws/bounded_row.h"

namespace sap {

struct BoxBarrier {
  BoundedRow::Parameters p;
  double g{0};
  double slack_l{1}, slack_h{1};  // g - lo, hi - g
  double u_l{0}, u_h{0};

  struct Step {
    double g{0}, u_l{0}, u_h{0};

    Step& operator+=(const Step& other) {
      g += other.g;
      u_l += other.u_l;
      u_h += other.u_h;
      return *this;
    }
  };
  // Right-hand sides of the two products.
  struct Products {
    double l{0}, h{0};
  };

  bool is_given() const { return p.lower == p.upper; }
  bool has_l() const { return std::isfinite(p.lower) && !is_given(); }
  bool has_h() const { return std::isfinite(p.upper) && !is_given(); }
  int num_bounds() const { return (has_l() ? 1 : 0) + (has_h() ? 1 : 0); }

  // d g / d e at m held.
  double Slope() const {
    if (is_given()) return 0;
    return 1 / (p.R + (has_l() ? u_l / slack_l : 0) + (has_h() ? u_h / slack_h : 0));
  }
  double Residual(double e) const { return is_given() ? 0 : p.R * g - e - u_l + u_h; }
  double Complementarity(double a, const Step& s) const {
    return (has_l() ? (u_l + a * s.u_l) * (slack_l + a * s.g) : 0) +
           (has_h() ? (u_h + a * s.u_h) * (slack_h - a * s.g) : 0);
  }
  Products ProductsAfter(double a, const Step& s) const {
    return {(u_l + a * s.u_l) * (slack_l + a * s.g), (u_h + a * s.u_h) * (slack_h - a * s.g)};
  }
  // The change of e that has the effect of products of d.
  double Target(const Products& d) const {
    return (has_l() ? d.l / slack_l : 0) - (has_h() ? d.h / slack_h : 0);
  }
  Step StepOf(double dg, const Products& d) const {
    return {dg, has_l() ? (d.l - u_l * dg) / slack_l : 0, has_h() ? (d.h + u_h * dg) / slack_h : 0};
  }
  double LargestStep(const Step& s) const {
    double step = std::numeric_limits<double>::infinity();
    const auto limit = [&](double x, double dx) {
      if (dx < 0) step = std::min(step, -x / dx);
    };
    if (has_l()) {
      limit(slack_l, s.g);
      limit(u_l, s.u_l);
    }
    if (has_h()) {
      limit(slack_h, -s.g);
      limit(u_h, s.u_h);
    }
    return step;
  }
  void Advance(double a, const Step& s) {
    if (is_given()) return;
    slack_l += a * s.g;
    slack_h -= a * s.g;
    u_l += a * s.u_l;
    u_h += a * s.u_h;
    g += a * s.g;
    if (has_l() && !(has_h() && slack_h < slack_l)) g = p.lower + slack_l;
    if (has_h() && !(has_l() && slack_l <= slack_h)) g = p.upper - slack_h;
  }
  // Starts inside the bounds by at least `margin`, or a tenth of their distance.
  void Start(double near_g, double margin) {
    g = near_g;
    if (is_given()) {
      g = p.lower;
      return;
    }
    if (has_l() && has_h()) margin = std::min(margin, 0.1 * (p.upper - p.lower));
    if (has_l()) g = std::max(g, p.lower + margin);
    if (has_h()) g = std::min(g, p.upper - margin);
    if (has_l()) slack_l = std::max(g - p.lower, margin);
    if (has_h()) slack_h = std::max(p.upper - g, margin);
  }
  // u of the residual at e, and at least `least`.
  void StartDuals(double e, double least) {
    const double difference = p.R * g - e;
    u_l = has_l() ? std::max(difference, 0.0) + least : 0;
    u_h = has_h() ? std::max(-difference, 0.0) + least : 0;
  }

  // 1/2 R (y - g)^2 + (g - y)(R y - e) with the y of e, for any g within the bounds: at least 0.
  struct Gap {
    double value;
    double size;
    double difference;
  };
  static Gap GapAt(const BoundedRow::Parameters& p, double e, double g) {
    const double y = std::clamp(e * p.inv_R, p.lower, p.upper);
    const double difference = y - g;
    const double size =
        (std::abs(y) + std::abs(g)) * (p.R * std::abs(y) + std::abs(e)) + p.R * (y * y + g * g);
    return {0.5 * p.R * difference * difference + std::max(-difference * (p.R * y - e), 0.0), size,
            difference};
  }
};

}  // namespace sap
