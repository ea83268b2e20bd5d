#include "tests/support/constrained_problem.h"

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace sap::test {

namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using RowMajorD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double ValueAt(const std::vector<double>& values, size_t i, double otherwise) {
  return values.empty() ? otherwise : values[i];
}

Vector3d VectorAt(const std::vector<double>& values, size_t i) {
  if (values.empty()) return Vector3d::Zero();
  return {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
}

bool HasAngularAxes(const LawArrays& law, size_t i) {
  return ValueAt(law.torsional_friction, i, 0) > 0 || ValueAt(law.rolling_friction, 2 * i, 0) > 0 ||
         ValueAt(law.rolling_friction, 2 * i + 1, 0) > 0;
}

// Least regularization that keeps a constraint near-rigid.
long double NearRigidR(double beta, long double w) {
  constexpr long double kPi = std::numbers::pi_v<long double>;
  return static_cast<long double>(beta) * beta / (4 * kPi * kPi) * w;
}

MatrixL Transposed(const MatrixL& matrix) { return matrix.transpose(); }

}  // namespace

ConstrainedProblem::ConstrainedProblem(const ProblemArrays& arrays) {
  ReadTrees(arrays);
  ReadContacts(arrays);
  ReadBodyContacts(arrays);
  ReadRows(arrays);
}

void ConstrainedProblem::ReadTrees(const ProblemArrays& arrays) {
  size_t at = 0;
  for (const uint32_t n : arrays.trees.dofs) {
    const MatrixL A = Eigen::Map<const RowMajorD>(arrays.trees.dynamics_matrix.data() + at, n, n)
                          .cast<long double>();
    A_.push_back((A + Transposed(A)) / 2);
    at += static_cast<size_t>(n) * n;
  }
  for (size_t i = 0; i < arrays.bodies.mass.size(); ++i) {
    const double* I = arrays.bodies.inertia.data() + 6 * i;
    MatrixL A = MatrixL::Identity(6, 6) * static_cast<long double>(arrays.bodies.mass[i]);
    A.bottomRightCorner<3, 3>() << I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2];
    A_.push_back(A);
  }
  for (const MatrixL& A : A_) {
    starts_.push_back(starts_.back() + static_cast<int>(A.rows()));
    delassus_inverse_.push_back(arrays.regularization.rule == DelassusRule::kDiagonal
                                    ? MatrixL(A.diagonal().cwiseInverse().asDiagonal())
                                    : MatrixL(A.inverse()));
  }
  ReadCouplings(arrays);
  v_star_.resize(num_velocities());
  v_star_ << ToVectorL(arrays.trees.free_motion_velocity),
      ToVectorL(arrays.bodies.free_motion_velocity);
}

void ConstrainedProblem::ReadCouplings(const ProblemArrays& arrays) {
  size_t at = 0;
  for (size_t k = 0; k < arrays.trees.coupled_a.size(); ++k) {
    const int a = arrays.trees.coupled_a[k];
    const int b = arrays.trees.coupled_b[k];
    const auto rows = A_[a].rows(), columns = A_[b].rows();
    couplings_.push_back(
        {a, b,
         Eigen::Map<const RowMajorD>(arrays.trees.coupling_block.data() + at, rows, columns)
             .cast<long double>()});
    at += static_cast<size_t>(rows * columns);
  }
  if (couplings_.empty() || arrays.regularization.rule == DelassusRule::kDiagonal) return;
  std::vector<Eigen::Triplet<long double>> entries;  // of the lower triangle
  const auto add = [&](int row, int column, const MatrixL& block) {
    for (int i = 0; i < block.rows(); ++i) {
      for (int j = 0; j < block.cols(); ++j) {
        if (row + i >= column + j) entries.emplace_back(row + i, column + j, block(i, j));
      }
    }
  };
  for (size_t t = 0; t < A_.size(); ++t) add(starts_[t], starts_[t], A_[t]);
  for (const Coupling& c : couplings_) add(starts_[c.a], starts_[c.b], c.block);
  Eigen::SparseMatrix<long double> A(num_velocities(), num_velocities());
  A.setFromTriplets(entries.begin(), entries.end());
  factor_ = std::make_shared<SparseFactor>(A);
}

MatrixL ConstrainedProblem::Delassus(size_t first_block, int rows) const {
  MatrixL W = MatrixL::Zero(rows, rows);
  if (factor_ == nullptr) {
    for (size_t b = first_block; b < blocks_.size(); ++b) {
      const MatrixL J = blocks_[b].J.topRows(rows);
      W += J * delassus_inverse_[blocks_[b].tree] * Transposed(J);
    }
    return W;
  }
  MatrixL Jt = MatrixL::Zero(num_velocities(), rows);
  for (size_t b = first_block; b < blocks_.size(); ++b) {
    Jt.middleRows(starts_[blocks_[b].tree], blocks_[b].J.cols()) =
        Transposed(blocks_[b].J.topRows(rows));
  }
  // W = Y' D^-1 Y with L Y = P J'. Going forward alone skips the zeros of Y, most of its rows.
  const MatrixL Y = factor_->matrixL().solve(MatrixL(factor_->permutationP() * Jt));
  return Transposed(Y) * factor_->vectorD().cwiseInverse().asDiagonal() * Y;
}

// By the linear rows, or by the angular ones in units of friction where that is more.
long double ConstrainedProblem::DelassusOfContact(size_t first_block, const Vector6L& mu) const {
  const bool turns = !mu.tail(3).isZero();
  const MatrixL W = Delassus(first_block, turns ? 6 : 3);
  if (!turns) return W.norm() / 3;
  const VectorL arms = 1e-3L / mu[0] * mu.tail(3);
  const MatrixL scaled = arms.asDiagonal() * W.bottomRightCorner(3, 3) * arms.asDiagonal();
  return std::max(MatrixL(W.topLeftCorner(3, 3)).norm(), scaled.norm()) / 3;
}

void ConstrainedProblem::ReadContacts(const ProblemArrays& arrays) {
  const ProblemArrays::Contacts& contacts = arrays.contacts;
  size_t at = 0, angular_at = 0, num_angular = 0;
  const auto take = [](const std::vector<double>& from, size_t* start, int columns) {
    const MatrixL J =
        Eigen::Map<const RowMajorD>(from.data() + *start, 3, columns).cast<long double>();
    *start += 3 * static_cast<size_t>(columns);
    return J;
  };
  size_t part = 0;
  for (size_t i = 0; i < static_cast<size_t>(CountContacts(contacts)); ++i) {
    const size_t first_block = blocks_.size();
    const int row = 6 * num_contacts();
    std::vector<int> trees;
    if (contacts.parts.empty()) {
      trees.push_back(contacts.tree_a[i]);
      if (contacts.tree_b[i] >= 0) trees.push_back(contacts.tree_b[i]);
    } else {
      for (uint32_t k = 0; k < contacts.parts[i]; ++k) trees.push_back(contacts.part_tree[part++]);
    }
    for (const int tree : trees) {
      const int n = static_cast<int>(A_[tree].rows());
      MatrixL J = MatrixL::Zero(6, n);
      J.topRows(3) = take(contacts.jacobian, &at, n);
      if (HasAngularAxes(contacts.law, i)) {
        J.bottomRows(3) = take(contacts.angular_jacobian, &angular_at, n);
      }
      AddBlock(row, tree, J);
    }
    ReadLaw(arrays, contacts.law, i, first_block, Matrix3d::Identity(), &num_angular);
  }
}

void ConstrainedProblem::ReadBodyContacts(const ProblemArrays& arrays) {
  const ProblemArrays::BodyContacts& contacts = arrays.body_contacts;
  const int num_trees = static_cast<int>(arrays.trees.dofs.size());
  size_t num_angular = 0;
  for (size_t i = 0; i < contacts.body_a.size(); ++i) {
    const Vector3d n = VectorAt(contacts.normal, i).normalized();
    Matrix3d frame = FrameOfSchema(n);
    if (!contacts.tangent.empty()) {
      const Vector3d given = VectorAt(contacts.tangent, i);
      const Vector3d t1 = (given - n * n.dot(given)).normalized();
      frame << t1, n.cross(t1), n;
    }
    const size_t first_block = blocks_.size();
    const int row = 6 * num_contacts();
    for (const double sign : {1.0, -1.0}) {
      const int body = sign > 0 ? contacts.body_a[i] : contacts.body_b[i];
      if (body < 0) continue;
      const Vector3d r = VectorAt(contacts.point, i) - VectorAt(arrays.bodies.center_of_mass, body);
      MatrixL J = MatrixL::Zero(6, 6);
      J.topRows(3) = PointJacobian(frame, r, sign).cast<long double>();
      if (HasAngularAxes(contacts.law, i)) {
        J.bottomRightCorner<3, 3>() = (sign * frame.transpose()).cast<long double>();
      }
      AddBlock(row, num_trees + body, J);
    }
    ReadLaw(arrays, contacts.law, i, first_block, frame, &num_angular);
  }
}

void ConstrainedProblem::ReadLaw(const ProblemArrays& arrays, const LawArrays& law, size_t i,
                                 size_t first_block, const Matrix3d& frame, size_t* num_angular) {
  const long double dt = arrays.time_step;
  const long double period = dt + ValueAt(law.relaxation_time, i, 0);
  const double mu = law.friction[i];
  ExactContact contact;
  const bool has_law = !law.law.empty() && law.law[i] != 0;
  contact.law = has_law ? static_cast<ContactLaw>(law.law[i]) : ContactLaw::kSap;
  contact.mu << mu, ValueAt(law.friction_2, i, mu), 0, ValueAt(law.rolling_friction, 2 * i, 0),
      ValueAt(law.rolling_friction, 2 * i + 1, 0), ValueAt(law.torsional_friction, i, 0);
  const Vector3d target =
      law.target_velocity.empty() ? Vector3d::Zero() : VectorAt(law.target_velocity, i);
  contact.v_hat.head<3>() = (frame.transpose() * target).cast<long double>();
  if (law.target_velocity.empty()) contact.v_hat[2] = -law.signed_distance[i] / period;
  if (HasAngularAxes(law, i)) {
    const Vector3d spin = VectorAt(law.target_angular_velocity, (*num_angular)++);
    contact.v_hat.tail<3>() = (frame.transpose() * spin).cast<long double>();
    angular_contacts_.push_back(num_contacts());
  }
  const Vector3d surface = frame.transpose() * VectorAt(law.surface_velocity, i);
  offsets_.insert(offsets_.end(), {surface.x(), surface.y(), surface.z(), 0, 0, 0});

  const ContactProblemView::Regularization& rule = arrays.regularization;
  const long double w = law.delassus_estimate.empty() ? DelassusOfContact(first_block, contact.mu)
                                                      : law.delassus_estimate[i];
  contact.w = w;
  const long double h = ReferenceTimeStep(arrays);
  const long double stretch = h * (h + law.relaxation_time[i]) / (dt * period);
  contact.R_n = law.regularization_n.empty() ? std::max(NearRigidR(rule.beta, w) * stretch,
                                                        1 / (dt * law.stiffness[i] * period))
                                             : law.regularization_n[i];
  const long double R_t = !law.regularization_t.empty() ? law.regularization_t[i]
                          : w > 0                       ? rule.sigma * w * h / dt
                                                        : rule.sigma * contact.R_n * h / dt;
  contact.rho = R_t * mu * mu;
  contact.adhesion_impulse = dt * ValueAt(law.adhesion, i, 0);
  contact.time_step = dt;
  contact.elastic_force = ValueAt(law.hunt_crossley.elastic_force, i, 0);
  contact.stiffness = ValueAt(law.stiffness, i, 0);
  contact.dissipation = ValueAt(law.hunt_crossley.dissipation, i, 0);
  contact.lagged_normal_impulse = ValueAt(law.hunt_crossley.lagged_normal_impulse, i, 0);
  contact.slip_speed = std::max<long double>(
      rule.stiction_speed, mu * rule.sigma * w * h / dt * contact.lagged_normal_impulse);
  contacts_.push_back(contact);
}

void ConstrainedProblem::ReadRows(const ProblemArrays& arrays) {
  const ProblemArrays::Rows& rows = arrays.rows;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const long double dt = arrays.time_step;
  size_t entry = 0;
  for (size_t i = 0; i < rows.entries.size(); ++i) {
    const int row = 6 * num_contacts() + num_rows();
    const size_t first_block = blocks_.size();
    for (const size_t end = entry + rows.entries[i]; entry < end;) {
      const int index = static_cast<int>(rows.velocity_index[entry]);
      const int tree = static_cast<int>(std::upper_bound(starts_.begin(), starts_.end(), index) -
                                        starts_.begin()) -
                       1;
      MatrixL J = MatrixL::Zero(1, A_[tree].rows());
      for (; entry < end && static_cast<int>(rows.velocity_index[entry]) < starts_[tree + 1];
           ++entry) {
        J(0, static_cast<int>(rows.velocity_index[entry]) - starts_[tree]) =
            rows.coefficient[entry];
      }
      AddBlock(row, tree, J);
    }
    const long double period = dt + ValueAt(rows.relaxation_time, i, 0);
    const double given = ValueAt(rows.delassus_estimate, i, 0);
    const long double w = given > 0 ? given : Delassus(first_block, 1)(0, 0);
    const long double h = ReferenceTimeStep(arrays);
    const long double stretch = h * (h + ValueAt(rows.relaxation_time, i, 0)) / (dt * period);
    long double R = std::max(NearRigidR(arrays.regularization.row_beta, w) * stretch,
                             1 / (dt * ValueAt(rows.stiffness, i, kInfinity) * period));
    if (ValueAt(rows.slip_parameter, i, 0) > 0) R = rows.slip_parameter[i] * w * h / dt;
    if (ValueAt(rows.regularization, i, 0) > 0) R = rows.regularization[i];
    const long double v_hat = rows.target_velocity.empty()
                                  ? -ValueAt(rows.position_error, i, 0) / period
                                  : rows.target_velocity[i];
    rows_.push_back({v_hat, R, dt * ValueAt(rows.force_lower, i, -kInfinity),
                     dt * ValueAt(rows.force_upper, i, kInfinity),
                     dt * ValueAt(rows.force_offset, i, 0)});
    offsets_.push_back(ValueAt(rows.velocity_offset, i, 0));
  }
}

VectorL ConstrainedProblem::ConstraintVelocity(const VectorL& v) const {
  VectorL v_c = Eigen::Map<const VectorL>(offsets_.data(), dimension());
  for (const Block& block : blocks_) {
    v_c.segment(block.row, block.J.rows()) +=
        block.J * v.segment(starts_[block.tree], block.J.cols());
  }
  return v_c;
}

VectorL ConstrainedProblem::VelocityMagnitude(const VectorL& v) const {
  VectorL magnitude = Eigen::Map<const VectorL>(offsets_.data(), dimension()).cwiseAbs();
  for (const Block& block : blocks_) {
    magnitude.segment(block.row, block.J.rows()) +=
        block.J.cwiseAbs() * v.segment(starts_[block.tree], block.J.cols()).cwiseAbs();
  }
  return magnitude;
}

VectorL ConstrainedProblem::Impulse(const VectorL& v) const {
  const VectorL v_c = ConstraintVelocity(v);
  VectorL gamma(dimension());
  for (int i = 0; i < num_contacts(); ++i) {
    gamma.segment<6>(6 * i) = contacts_[i].At(v_c.segment<6>(6 * i)).impulse;
  }
  for (int i = 0; i < num_rows(); ++i) {
    gamma[6 * num_contacts() + i] = rows_[i].At(v_c[6 * num_contacts() + i]).impulse;
  }
  return gamma;
}

std::vector<long double> ConstrainedProblem::Costs(const VectorL& v) const {
  const VectorL v_c = ConstraintVelocity(v);
  std::vector<long double> costs;
  for (int i = 0; i < num_contacts(); ++i) {
    costs.push_back(contacts_[i].At(v_c.segment<6>(6 * i)).cost);
  }
  for (int i = 0; i < num_rows(); ++i) {
    costs.push_back(rows_[i].At(v_c[6 * num_contacts() + i]).cost);
  }
  return costs;
}

long double ConstrainedProblem::Cost(const VectorL& v) const {
  const VectorL change = v - v_star_;
  long double sum = change.dot(TimesA(change)) / 2;
  for (const long double cost : Costs(v)) sum += cost;
  return sum;
}

long double ConstrainedProblem::CostMagnitude(const VectorL& v) const {
  const VectorL change = v - v_star_;
  long double sum = change.dot(TimesA(change)) / 2;
  for (const long double cost : Costs(v)) sum += std::abs(cost);
  return sum;
}

long double ConstrainedProblem::QuadraticMagnitude(const VectorL& v) const {
  const VectorL size = (v - v_star_).cwiseAbs();
  long double sum = 0;
  for (size_t t = 0; t < A_.size(); ++t) {
    const VectorL of_tree = size.segment(starts_[t], A_[t].rows());
    sum += of_tree.dot(A_[t].cwiseAbs() * of_tree);
  }
  for (const auto& [a, b, block] : couplings_) {
    sum += 2 * size.segment(starts_[a], block.rows())
                   .dot(block.cwiseAbs() * size.segment(starts_[b], block.cols()));
  }
  return sum;
}

VectorL ConstrainedProblem::Gradient(const VectorL& v) const {
  return TimesA(v - v_star_) - TimesJt(Impulse(v));
}

VectorL ConstrainedProblem::Stacked(const std::vector<double>& impulse,
                                    const std::vector<double>& angular_impulse,
                                    const std::vector<double>& row_impulse) const {
  VectorL stacked = VectorL::Zero(dimension());
  for (int i = 0; i < num_contacts(); ++i) {
    for (int j = 0; j < 3; ++j) stacked[6 * i + j] = impulse.at(3 * i + j);
  }
  for (size_t i = 0; i < angular_contacts_.size(); ++i) {
    for (int j = 0; j < 3; ++j) {
      stacked[6 * angular_contacts_[i] + 3 + j] = angular_impulse.at(3 * i + j);
    }
  }
  for (int i = 0; i < num_rows(); ++i) stacked[6 * num_contacts() + i] = row_impulse.at(i);
  return stacked;
}

VectorL ConstrainedProblem::TimesA(const VectorL& v) const {
  VectorL p(v.size());
  for (size_t t = 0; t < A_.size(); ++t) {
    p.segment(starts_[t], A_[t].rows()) = A_[t] * v.segment(starts_[t], A_[t].rows());
  }
  for (const auto& [a, b, block] : couplings_) {
    p.segment(starts_[a], block.rows()) += block * v.segment(starts_[b], block.cols());
    p.segment(starts_[b], block.cols()) += Transposed(block) * v.segment(starts_[a], block.rows());
  }
  return p;
}

VectorL ConstrainedProblem::TimesJt(const VectorL& impulse) const {
  VectorL f = VectorL::Zero(num_velocities());
  for (const Block& block : blocks_) {
    f.segment(starts_[block.tree], block.J.cols()) +=
        block.J.transpose() * impulse.segment(block.row, block.J.rows());
  }
  return f;
}

long double ConstrainedProblem::NormA(const VectorL& v) const {
  return std::sqrt(std::max(0.0L, v.dot(TimesA(v))));
}

VectorL ConstrainedProblem::DiagonalOfA() const {
  VectorL diagonal(num_velocities());
  for (size_t t = 0; t < A_.size(); ++t) {
    diagonal.segment(starts_[t], A_[t].rows()) = A_[t].diagonal();
  }
  return diagonal;
}

long double ConstrainedProblem::ScaledNorm(const VectorL& p) const {
  return p.cwiseQuotient(DiagonalOfA().cwiseSqrt()).norm();
}

}  // namespace sap::test
