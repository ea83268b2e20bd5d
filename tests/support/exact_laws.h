// The laws of all constraints in 80-bit arithmetic, from the formulas of
// proto/sap/v1/problem.proto: the impulse gamma = -df / dv_c and the cost f of one constraint at
// its velocity v_c.
#pragma once

#include "solver/problem/contact_problem.h"
#include "tests/support/primal_problem.h"

namespace sap::test {

// (t1, t2, n), then the angular components about them.
using Vector6L = Eigen::Matrix<long double, 6, 1>;

struct RowValue {
  long double impulse, cost;
};

// gamma = y clamped to [lower, upper], y = (v_hat - v_c) / R + u.
struct ExactRow {
  long double v_hat, R;
  long double lower, upper, offset;  // dt times the forces [N s, N m s]

  RowValue At(long double v_c) const;
};

struct ContactValue {
  Vector6L impulse;
  long double cost;
};

// A contact of any law.
struct ExactContact {
  ContactLaw law{ContactLaw::kSap};
  Vector6L mu{Vector6L::Zero()};  // of each axis; not of the normal
  long double w{0};               // [1/kg]
  Vector6L v_hat{Vector6L::Zero()};
  long double R_n{0};
  long double rho{0};               // R_j mu_j^2, the same on every axis of the cone
  long double adhesion_impulse{0};  // dt a [N s]
  // Hunt & Crossley
  long double time_step{0}, elastic_force{0}, stiffness{0}, dissipation{0};
  long double lagged_normal_impulse{0}, slip_speed{0};  // n_0 [N s], eps [m/s]

  ContactValue At(const Vector6L& v_c) const;

 private:
  ContactValue Cone(const Vector6L& v_c) const;
  ContactValue HuntCrossley(const Vector6L& v_c) const;
};

}  // namespace sap::test
