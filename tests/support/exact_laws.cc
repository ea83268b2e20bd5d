#include "tests/support/exact_laws.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sap::test {

RowValue ExactRow::At(long double v_c) const {
  const long double y = (v_hat - v_c) / R + offset;
  const long double gamma = std::clamp(y, lower, upper);
  return {gamma, R * gamma * (y - gamma / 2)};
}

ContactValue ExactContact::At(const Vector6L& v_c) const {
  return law == ContactLaw::kSap ? Cone(v_c) : HuntCrossley(v_c);
}

// In units of mu_j on axis j the cone is round, with one R = rho on all axes, so that the nearest
// point lies on the ray of y.
ContactValue ExactContact::Cone(const Vector6L& v_c) const {
  const Vector6L gap = v_hat - v_c;
  const Vector6L slip = mu.cwiseProduct(gap);
  const long double slip_norm = slip.norm();
  const long double y_n = gap[2] / R_n + adhesion_impulse;
  const Vector3L nearest = rho > 0 ? NearestInCone({slip_norm / rho, 0, y_n}, rho, R_n, 1)
                                   : Vector3L(0, 0, std::max(0.0L, y_n));
  ContactValue value;
  value.impulse = slip_norm > 0 ? Vector6L(mu.cwiseProduct(slip) * (nearest.x() / slip_norm))
                                : Vector6L::Zero();
  value.impulse[2] = nearest.z() - adhesion_impulse;
  // The shift of the cone adds the work of the adhesion; f is R_n gamma_n^2 / 2 where it sticks.
  value.cost = (rho * nearest.x() * nearest.x() + R_n * nearest.z() * nearest.z()) / 2 -
               R_n * adhesion_impulse * (y_n - adhesion_impulse / 2);
  return value;
}

ContactValue ExactContact::HuntCrossley(const Vector6L& v_c) const {
  const long double friction = mu[0];
  const long double root = std::hypot(v_c[0], v_c[1], slip_speed);
  const bool similar = law == ContactLaw::kHuntCrossleySimilar;
  const long double z = similar ? v_c[2] - friction * (root - slip_speed) : v_c[2];
  // Both factors of n(z) are positive below this speed.
  constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
  const long double k = time_step * stiffness;
  const long double no_force = k > 0 ? elastic_force / k : std::copysign(kInfinity, elastic_force);
  const long double no_factor = dissipation > 0 ? 1 / dissipation : kInfinity;
  const long double open =
      elastic_force == 0 && k == 0 ? -kInfinity : std::min(no_force, no_factor);
  const long double n =
      z < open ? time_step * (elastic_force - k * z) * (1 - dissipation * z) : 0.0L;
  // The integral of n from 0 to x.
  const long double x = open == -kInfinity ? 0.0L : std::min(z, open);
  const long double integral =
      time_step * x *
      (elastic_force - x / 2 * (k + dissipation * elastic_force) + dissipation * k * x * x / 3);
  const long double bound = friction * (similar ? n : lagged_normal_impulse);
  ContactValue value{Vector6L::Zero(), -integral};
  value.impulse[0] = -bound * v_c[0] / root;
  value.impulse[1] = -bound * v_c[1] / root;
  value.impulse[2] = n;
  if (!similar) value.cost += bound * (root - slip_speed);
  return value;
}

}  // namespace sap::test
