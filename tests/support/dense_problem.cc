#include "tests/support/dense_problem.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace sap::test {

namespace {

constexpr int kNormal = 2;
constexpr int kContactRows = 6;

long double At(const std::vector<double>& values, size_t i, double otherwise) {
  return values.empty() ? otherwise : values[i];
}

long double NearRigid(long double beta) {
  constexpr long double kPi = std::numbers::pi_v<long double>;
  return beta * beta / (4 * kPi * kPi);
}

// The blocks of one contact at `at`, 3 x n_a and 3 x n_b; moves `at` past them.
MatrixL ReadBlocks(const std::vector<double>& values, const std::vector<int>& starts,
                   std::initializer_list<int> trees, int64_t* at) {
  MatrixL J = MatrixL::Zero(3, starts.back());
  for (const int tree : trees) {
    if (tree < 0) continue;
    for (int row = 0; row < 3; ++row) {
      for (int i = starts[tree]; i < starts[tree + 1]; ++i) J(row, i) = values[(*at)++];
    }
  }
  return J;
}

// The integral of the normal impulse of Hunt & Crossley, and that impulse. It is a polynomial of
// third order while the contact is closed, for which Simpson's rule is exact.
struct Normal {
  long double n, N;
};
Normal NormalImpulse(const DenseContact& c, long double z) {
  const auto f = [&](long double at) { return c.f_e - c.dt * c.k * at; };
  const auto q = [&](long double at) { return 1 - c.d * at; };
  const auto closed = [&](long double at) { return c.dt * f(at) * q(at); };
  const bool is_closed = f(z) > 0 && q(z) > 0;
  long double end = z;
  if (!is_closed) {
    constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
    end = c.k > 0 ? c.f_e / (c.dt * c.k) : c.f_e > 0 ? kInfinity : -kInfinity;
    if (c.d > 0) end = std::min(end, 1 / c.d);
  }
  const long double N =
      std::isfinite(end) ? end / 6 * (closed(0) + 4 * closed(end / 2) + closed(end)) : 0;
  return {is_closed ? closed(z) : 0, N};
}

long double Size(const VectorL& v, long double eps) {
  return std::hypot(std::hypot(v[0], v[1]), eps);
}

}  // namespace

VectorL DenseContact::Impulse(const VectorL& v_c) const {
  VectorL gamma = VectorL::Zero(kContactRows);
  if (law != ContactLaw::kSap) {
    const long double E = Size(v_c, eps);
    const bool lagged = law == ContactLaw::kHuntCrossleyLagged;
    const Normal normal = NormalImpulse(*this, v_c[kNormal] - (lagged ? 0 : mu[0] * (E - eps)));
    gamma.head(2) = -mu[0] * (lagged ? n_0 : normal.n) / E * v_c.head(2);
    gamma[kNormal] = normal.n;
    return gamma;
  }
  // For a p_n the best of the axes is theirs alone, brought into the cone; the slope of what is
  // left is bisected.
  const long double rho = R_t * mu[0] * mu[0];
  VectorL e = mu.cwiseProduct(v_hat - v_c);
  const long double e_n = e[kNormal] + R_n * c;
  e[kNormal] = 0;
  const long double E = e.norm();
  const auto slope = [&](long double p_n) {
    return R_n * p_n - e_n - std::max(0.0L, E - rho * p_n);
  };
  long double low = 0, high = 0;
  if (slope(0) < 0) {
    for (high = 1; slope(high) < 0; high *= 2) {
    }
    for (int i = 0; i < 150; ++i) {
      const long double middle = (low + high) / 2;
      (slope(middle) < 0 ? low : high) = middle;
    }
  }
  const long double share = E > rho * high ? high / E : rho > 0 ? 1 / rho : 0;
  gamma = share * mu.cwiseProduct(e);
  gamma[kNormal] = high - c;
  return gamma;
}

long double DenseContact::Cost(const VectorL& v_c) const {
  if (law != ContactLaw::kSap) {
    const long double soft = Size(v_c, eps) - eps;
    if (law == ContactLaw::kHuntCrossleySimilar) {
      return -NormalImpulse(*this, v_c[kNormal] - mu[0] * soft).N;
    }
    return mu[0] * n_0 * soft - NormalImpulse(*this, v_c[kNormal]).N;
  }
  const VectorL gamma = Impulse(v_c);
  long double cost = gamma.dot(v_hat - v_c);
  for (int i = 0; i < kContactRows; ++i) {
    if (mu[i] == 0) continue;
    const long double R = i == kNormal ? R_n : R_t * (mu[0] / mu[i]) * (mu[0] / mu[i]);
    cost -= R * gamma[i] * gamma[i] / 2;
  }
  return cost;
}

long double DenseRow::Impulse(long double v_c) const {
  return std::min(std::max((v_hat - v_c) / R, lower), upper);
}

long double DenseRow::Cost(long double v_c) const {
  const long double gamma = Impulse(v_c);
  return gamma * (v_hat - v_c) - R * gamma * gamma / 2;
}

DenseProblem::DenseProblem(const ProblemArrays& arrays) {
  const std::vector<int> starts = VelocityStarts(arrays);
  v_star_ = ToVectorL(arrays.trees.free_motion_velocity);
  A_ = MatrixL::Zero(starts.back(), starts.back());
  int64_t at = 0;
  for (size_t tree = 0; tree + 1 < starts.size(); ++tree) {
    for (int i = starts[tree]; i < starts[tree + 1]; ++i) {
      for (int j = starts[tree]; j < starts[tree + 1]; ++j) {
        A_(i, j) = arrays.trees.dynamics_matrix[at++];
      }
    }
  }
  const MatrixL mobility = arrays.regularization.rule == DelassusRule::kDiagonal
                               ? MatrixL(A_.diagonal().cwiseInverse().asDiagonal())
                               : MatrixL(A_.inverse());
  ReadContacts(arrays, mobility);
  ReadRows(arrays, mobility);
}

void DenseProblem::ReadContacts(const ProblemArrays& arrays, const MatrixL& mobility) {
  const std::vector<int> starts = VelocityStarts(arrays);
  const ProblemArrays::Contacts& given = arrays.contacts;
  const LawArrays& law = given.law;
  const ContactProblemView::Regularization& regularization = arrays.regularization;
  const long double dt = arrays.time_step;
  const long double h = ReferenceTimeStep(arrays);
  int64_t at = 0, angular_at = 0, angular = 0;
  for (size_t i = 0; i < given.tree_a.size(); ++i) {
    DenseContact c;
    c.law =
        law.law.empty() || law.law[i] == 0 ? ContactLaw::kSap : static_cast<ContactLaw>(law.law[i]);
    c.J = MatrixL::Zero(kContactRows, starts.back());
    c.J.topRows(3) = ReadBlocks(given.jacobian, starts, {given.tree_a[i], given.tree_b[i]}, &at);
    c.mu = c.b = c.v_hat = VectorL::Zero(kContactRows);
    c.mu << law.friction[i], At(law.friction_2, i, law.friction[i]), 1,
        At(law.rolling_friction, 2 * i, 0), At(law.rolling_friction, 2 * i + 1, 0),
        At(law.torsional_friction, i, 0);
    const long double time = dt + law.relaxation_time[i];
    for (int row = 0; row < 3; ++row) {
      c.b[row] = At(law.surface_velocity, 3 * i + row, 0);
      c.v_hat[row] = At(law.target_velocity, 3 * i + row, 0);
    }
    if (law.target_velocity.empty()) c.v_hat[kNormal] = -law.signed_distance[i] / time;
    if (!c.mu.tail(3).isZero()) {
      c.J.bottomRows(3) = ReadBlocks(given.angular_jacobian, starts,
                                     {given.tree_a[i], given.tree_b[i]}, &angular_at);
      for (int row = 0; row < 3; ++row) {
        c.v_hat[3 + row] = At(law.target_angular_velocity, 3 * angular + row, 0);
      }
      ++angular;
    }
    const MatrixL delassus = c.J.topRows(3) * mobility * c.J.topRows(3).transpose();
    c.w = law.delassus_estimate.empty() ? delassus.norm() / 3 : law.delassus_estimate[i];
    c.R_t = At(law.regularization_t, i, 0);
    if (c.R_t == 0) c.R_t = regularization.sigma * c.w * h / dt;
    c.R_n = At(law.regularization_n, i, 0);
    if (c.R_n == 0) {
      const long double near_rigid =
          NearRigid(regularization.beta) * c.w * h * (h + law.relaxation_time[i]) / (dt * time);
      c.R_n = std::max(near_rigid, 1 / (dt * law.stiffness[i] * time));
    }
    c.c = dt * At(law.adhesion, i, 0);
    c.f_e = At(law.hunt_crossley.elastic_force, i, 0);
    c.k = law.stiffness[i];
    c.d = At(law.hunt_crossley.dissipation, i, 0);
    c.n_0 = At(law.hunt_crossley.lagged_normal_impulse, i, 0);
    c.eps = std::max<long double>(regularization.stiction_speed,
                                  c.mu[0] * regularization.sigma * c.w * c.n_0 * h / dt);
    c.dt = dt;
    contacts_.push_back(c);
  }
}

void DenseProblem::ReadRows(const ProblemArrays& arrays, const MatrixL& mobility) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const ProblemArrays::Rows& given = arrays.rows;
  const long double dt = arrays.time_step;
  const long double h = ReferenceTimeStep(arrays);
  size_t at = 0;
  for (size_t i = 0; i < given.entries.size(); ++i) {
    DenseRow row;
    row.J = MatrixL::Zero(1, v_star_.size());
    for (uint32_t e = 0; e < given.entries[i]; ++e, ++at) {
      row.J(0, given.velocity_index[at]) = given.coefficient[at];
    }
    row.b = At(given.velocity_offset, i, 0);
    const long double tau = At(given.relaxation_time, i, 0);
    const long double time = dt + tau;
    row.w = At(given.delassus_estimate, i, 0);
    if (row.w == 0) row.w = (row.J * mobility * row.J.transpose())(0, 0);
    row.R = At(given.regularization, i, 0);
    const long double slip = At(given.slip_parameter, i, 0);
    if (row.R == 0 && slip > 0) row.R = slip * row.w * h / dt;
    if (row.R == 0) {
      row.R =
          std::max(NearRigid(arrays.regularization.row_beta) * row.w * h * (h + tau) / (dt * time),
                   1 / (dt * At(given.stiffness, i, kInfinity) * time));
    }
    row.v_hat = given.target_velocity.empty() ? -At(given.position_error, i, 0) / time
                                              : given.target_velocity[i];
    row.v_hat += row.R * dt * At(given.force_offset, i, 0);
    row.lower = dt * At(given.force_lower, i, -kInfinity);
    row.upper = dt * At(given.force_upper, i, kInfinity);
    rows_.push_back(row);
  }
}

long double DenseProblem::Cost(const VectorL& v) const {
  const VectorL change = v - v_star_;
  long double cost = change.dot(A_ * change) / 2;
  for (const DenseContact& c : contacts_) cost += c.Cost(c.J * v + c.b);
  for (const DenseRow& row : rows_) cost += row.Cost((row.J * v)[0] + row.b);
  return cost;
}

long double DenseProblem::CostSize(const VectorL& v) const {
  const VectorL change = v - v_star_;
  long double size = change.dot(A_ * change) / 2;
  for (const DenseContact& c : contacts_) size += std::abs(c.Cost(c.J * v + c.b));
  for (const DenseRow& row : rows_) size += std::abs(row.Cost((row.J * v)[0] + row.b));
  return size;
}

VectorL DenseProblem::Gradient(const VectorL& v) const {
  VectorL gradient = A_ * (v - v_star_);
  for (const DenseContact& c : contacts_) gradient -= c.J.transpose() * c.Impulse(c.J * v + c.b);
  for (const DenseRow& row : rows_) {
    gradient -= row.J.transpose() * row.Impulse((row.J * v)[0] + row.b);
  }
  return gradient;
}

MatrixL DenseProblem::Hessian(const VectorL& v) const {
  std::vector<int> all(v.size());
  std::iota(all.begin(), all.end(), 0);
  return Hessian(v, all);
}

MatrixL DenseProblem::Hessian(const VectorL& v, const std::vector<int>& velocities) const {
  constexpr long double kDifference = 1e-9L;  // constraints keep their regions
  const auto size = static_cast<Eigen::Index>(velocities.size());
  MatrixL H(size, size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const VectorL step = kDifference * VectorL::Unit(v.size(), velocities[i]);
    const VectorL change = Gradient(v + step) - Gradient(v - step);
    H.col(i) = change(velocities) / (2 * kDifference);
  }
  return H;
}

}  // namespace sap::test
