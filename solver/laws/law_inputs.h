// The numbers of a problem from which the law of one constraint follows, in the unit of mass of its
// island. The same structures hold derivatives: dL/d(input), or a direction.
//
// Every law has a function
//
//   Make(in, d, partials)
//
// that returns its Parameters and, next to each of them, visits its partial derivatives by
// partials(k, d.x, dp_k/dx) for every input x that parameter k depends on. One list serves both
// directions:
//
//   reverse   p_bar is known:  d.x  += dp_k/dx p_bar_k
//   forward   d.x is known:    dp_k += dp_k/dx d.x
//
// Parameters are numbered by row of v_hat, then as the law's SensitivityAt numbers them. Where a
// rule takes the larger of two values, partials.Choice(Larger) tells which.
#pragma once

#include <algorithm>

#include "solver/laws/law_types.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/problem_differential.h"

namespace sap {

struct LawInputs {
  SharedInputs shared;
  double w{0};  // Delassus estimate [1/kg]; 0 where no parameter depends on it
};

struct ContactInputs : LawInputs {
  LawVector<3> v_hat{}, surface_velocity{};  // contact frame [m/s]
  double mu{0};                              // [-]
  double stiffness{0};                       // k [N/m]
  double relaxation_time{0};                 // tau_d [s]
  double R_t{0}, R_n{0};                     // 0: by rule [1/kg]
};

// A contact in a cone. mu_2 and adhesion have derivatives also where the problem gives neither.
struct ConeInputs : ContactInputs {
  double mu_2{0};                                    // along t2 [-]
  double adhesion{0};                                // a [N]
  LawVector<3> angular_friction{}, angular_v_hat{};  // about (t1, t2, n) [m], [rad/s]

  bool NeedsDelassus() const { return R_t == 0 || R_n == 0; }
};

struct HuntCrossleyInputs : ContactInputs {
  HuntCrossleyParameters material;

  bool NeedsDelassus() const { return mu * material.lagged_normal_impulse > 0; }
};

struct RowInputs : LawInputs, RowParameters {
  bool NeedsDelassus() const { return given_R == 0; }
};

// The larger of two values between which a rule chooses. A kink where they are equal.
struct Larger {
  double first, second;

  double value() const { return std::max(first, second); }
  double margin() const { return RelativeDistance(first, second); }
};

// Passed to Make as `partials` by a caller that wants the parameters alone.
struct NoPartials {
  void operator()(int, double, double) const {}
  void Choice(const Larger&) const {}
};

// By a caller that wants the partial derivatives: visit(k, d.x, dp_k/dx).
template <typename Visit>
struct EachPartial : Visit {
  void Choice(const Larger&) const {}
};
template <typename Visit>
EachPartial(Visit) -> EachPartial<Visit>;

// By a rule whose value is a multiple of that of another rule.
template <typename Partials>
struct ScaledPartials {
  double factor;
  Partials& partials;

  void operator()(int parameter, auto& input, double partial) {
    partials(parameter, input, factor * partial);
  }
  void Choice(const Larger& larger) { partials.Choice(larger); }
};
template <typename Partials>
ScaledPartials(double, Partials&) -> ScaledPartials<Partials>;

// By a caller that wants the distance of the rules from their kinks.
struct LeastMargin {
  double value{1};

  void operator()(int, double, double) const {}
  void Choice(const Larger& larger) { value = std::min(value, larger.margin()); }
};

}  // namespace sap
