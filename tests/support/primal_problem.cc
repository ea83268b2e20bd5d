#include "tests/support/primal_problem.h"

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace sap::test {

namespace {

using RowMajorL = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

MatrixL BlockAt(const std::vector<double>& values, int64_t start, int rows, int columns) {
  return Eigen::Map<const RowMajorL>(values.data() + start, rows, columns).cast<long double>();
}

}  // namespace

Vector3L NearestInCone(const Vector3L& y, long double R_t, long double R_n, long double mu) {
  const long double y_r = std::hypot(y.x(), y.y());
  if (y.z() > 0 && y_r <= mu * y.z()) return y;
  // Slope R_n (g_n - y_n) - mu R_t (y_r - mu g_n) of the piece on which the disk binds.
  const long double g_n = (R_n * y.z() + mu * R_t * y_r) / (R_n + mu * mu * R_t);
  if (!(g_n > 0)) return Vector3L::Zero();
  if (y_r == 0) return {0, 0, g_n};
  return {mu * g_n * (y.x() / y_r), mu * g_n * (y.y() / y_r), g_n};
}

VectorL ToVectorL(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()))
      .cast<long double>();
}

PrimalProblem::PrimalProblem(const ProblemArrays& arrays)
    : starts_(VelocityStarts(arrays)), v_star_(ToVectorL(arrays.trees.free_motion_velocity)) {
  int64_t at = 0;
  for (uint32_t n : arrays.trees.dofs) {
    const MatrixL A = BlockAt(arrays.trees.dynamics_matrix, at, n, n);
    A_.push_back((A + A.transpose()) / 2);
    A_inverse_.push_back(A_.back().inverse());
    at += static_cast<int64_t>(n) * n;
  }
  at = 0;
  const ProblemArrays::Contacts& c = arrays.contacts;
  for (int i = 0; i < static_cast<int>(c.tree_a.size()); ++i) {
    for (int tree : {c.tree_a[i], c.tree_b[i]}) {
      if (tree < 0) continue;
      const int n = static_cast<int>(arrays.trees.dofs[tree]);
      blocks_.push_back({i, tree, BlockAt(c.jacobian, at, 3, n)});
      at += 3 * static_cast<int64_t>(n);
    }
  }
  ReadLaw(arrays);
}

void PrimalProblem::ReadLaw(const ProblemArrays& arrays) {
  const LawArrays& law = arrays.contacts.law;
  const int count = static_cast<int>(arrays.contacts.tree_a.size());
  const bool diagonal = arrays.regularization.rule == DelassusRule::kDiagonal;
  std::vector<MatrixL> delassus(count, MatrixL::Zero(3, 3));
  for (const Block& block : blocks_) {
    const MatrixL inverse = diagonal
                                ? MatrixL(A_[block.tree].diagonal().cwiseInverse().asDiagonal())
                                : A_inverse_[block.tree];
    delassus[block.contact] += block.J * inverse * block.J.transpose();
  }
  mu_ = ToVectorL(law.friction);
  R_.resize(3 * count);
  v_hat_ = VectorL::Zero(3 * count);
  b_ = law.surface_velocity.empty() ? VectorL::Zero(3 * count) : ToVectorL(law.surface_velocity);
  const long double dt = arrays.time_step;
  const long double beta = arrays.regularization.beta;
  constexpr long double kPi = std::numbers::pi_v<long double>;
  for (int i = 0; i < count; ++i) {
    const long double time = dt + law.relaxation_time[i];
    const long double w =
        law.delassus_estimate.empty() ? delassus[i].norm() / 3 : law.delassus_estimate[i];
    const long double R_t =
        law.regularization_t.empty() ? arrays.regularization.sigma * w : law.regularization_t[i];
    const long double R_n =
        law.regularization_n.empty()
            ? std::max(beta * beta / (4 * kPi * kPi) * w, 1 / (dt * law.stiffness[i] * time))
            : law.regularization_n[i];
    R_.segment(3 * i, 3) << R_t, R_t, R_n;
    v_hat_[3 * i + 2] = -law.signed_distance[i] / time;
  }
}

VectorL PrimalProblem::ContactVelocity(const VectorL& v) const {
  VectorL v_c = b_;
  for (const Block& block : blocks_) {
    v_c.segment(3 * block.contact, 3) += block.J * v.segment(starts_[block.tree], block.J.cols());
  }
  return v_c;
}

VectorL PrimalProblem::Impulse(const VectorL& v) const {
  const VectorL y = (v_hat_ - ContactVelocity(v)).cwiseQuotient(R_);
  VectorL gamma(y.size());
  for (int i = 0; i < mu_.size(); ++i) {
    gamma.segment(3 * i, 3) = NearestInCone(y.segment(3 * i, 3), R_[3 * i], R_[3 * i + 2], mu_[i]);
  }
  return gamma;
}

long double PrimalProblem::Cost(const VectorL& v) const {
  const VectorL change = v - v_star_;
  const VectorL gamma = Impulse(v);
  return (change.dot(TimesA(change)) + gamma.cwiseProduct(R_).dot(gamma)) / 2;
}

VectorL PrimalProblem::Gradient(const VectorL& v) const {
  return TimesA(v - v_star_) - TimesJt(Impulse(v));
}

VectorL PrimalProblem::TimesA(const VectorL& v) const {
  VectorL p(v.size());
  for (size_t t = 0; t < A_.size(); ++t) {
    p.segment(starts_[t], A_[t].rows()) = A_[t] * v.segment(starts_[t], A_[t].rows());
  }
  return p;
}

VectorL PrimalProblem::TimesInverseA(const VectorL& p) const {
  VectorL v(p.size());
  for (size_t t = 0; t < A_.size(); ++t) {
    v.segment(starts_[t], A_[t].rows()) = A_inverse_[t] * p.segment(starts_[t], A_[t].rows());
  }
  return v;
}

VectorL PrimalProblem::TimesJt(const VectorL& impulse) const {
  VectorL f = VectorL::Zero(num_velocities());
  for (const Block& block : blocks_) {
    f.segment(starts_[block.tree], block.J.cols()) +=
        block.J.transpose() * impulse.segment(3 * block.contact, 3);
  }
  return f;
}

long double PrimalProblem::NormA(const VectorL& v) const {
  return std::sqrt(std::max(0.0L, v.dot(TimesA(v))));
}

long double PrimalProblem::ScaledNorm(const VectorL& p) const {
  long double sum = 0;
  for (size_t t = 0; t < A_.size(); ++t) {
    for (int i = 0; i < A_[t].rows(); ++i) {
      sum += p[starts_[t] + i] * p[starts_[t] + i] / A_[t](i, i);
    }
  }
  return std::sqrt(sum);
}

long double PrimalProblem::TraceA() const {
  long double trace = 0;
  for (const MatrixL& A : A_) trace += A.trace();
  return trace;
}

std::vector<double> PrimalProblem::DiagonalOfA() const {
  std::vector<double> diagonal;
  for (const MatrixL& A : A_) {
    for (int i = 0; i < A.rows(); ++i) diagonal.push_back(static_cast<double>(A(i, i)));
  }
  return diagonal;
}

using Eigen::Matrix3d;
using Eigen::Vector3d;

Matrix3d FrameOfSchema(const Vector3d& n) {
  const double s = std::copysign(1.0, n.z());
  const double a = -1.0 / (s + n.z());
  Matrix3d frame;
  frame.col(0) = Vector3d(1 + s * a * n.x() * n.x(), s * a * n.x() * n.y(), -s * n.x());
  frame.col(1) = Vector3d(a * n.x() * n.y(), s + a * n.y() * n.y(), -n.y());
  frame.col(2) = n;
  return frame;
}

ProblemArrays::Jacobian PointJacobian(const Matrix3d& frame, const Vector3d& r, double sign) {
  ProblemArrays::Jacobian J(3, 6);
  for (int j = 0; j < 3; ++j) {
    J.col(j) = sign * frame.transpose() * Vector3d::Unit(j);
    J.col(3 + j) = sign * frame.transpose() * Vector3d::Unit(j).cross(r);
  }
  return J;
}

namespace {

void AppendOptional(const std::vector<double>& from, std::vector<double>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void AppendLaw(const LawArrays& from, LawArrays* to) {
  AppendOptional(from.signed_distance, &to->signed_distance);
  AppendOptional(from.stiffness, &to->stiffness);
  AppendOptional(from.relaxation_time, &to->relaxation_time);
  AppendOptional(from.friction, &to->friction);
  AppendOptional(from.regularization_t, &to->regularization_t);
  AppendOptional(from.regularization_n, &to->regularization_n);
  AppendOptional(from.delassus_estimate, &to->delassus_estimate);
}

}  // namespace

ProblemArrays WithBodiesAsTrees(const ProblemArrays& arrays) {
  ProblemArrays result = arrays;
  result.bodies = {};
  result.body_contacts = {};
  const int num_trees = static_cast<int>(arrays.trees.dofs.size());
  const ProblemArrays::RigidBodies& bodies = arrays.bodies;
  for (size_t i = 0; i < bodies.mass.size(); ++i) {
    const double* I = bodies.inertia.data() + 6 * i;
    Eigen::MatrixXd A = Eigen::MatrixXd::Identity(6, 6) * bodies.mass[i];
    A.bottomRightCorner<3, 3>() << I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2];
    result.AddTree(
        A, Eigen::Map<const Eigen::VectorXd>(bodies.free_motion_velocity.data() + 6 * i, 6));
  }
  AppendOptional(bodies.guess_velocity, &result.trees.guess_velocity);
  AppendOptional(bodies.initial_velocity, &result.trees.initial_velocity);

  const ProblemArrays::BodyContacts& contacts = arrays.body_contacts;
  const auto vector_at = [](const std::vector<double>& values, size_t i) {
    return Vector3d(values[3 * i], values[3 * i + 1], values[3 * i + 2]);
  };
  for (size_t i = 0; i < contacts.body_a.size(); ++i) {
    const int a = contacts.body_a[i];
    const int b = contacts.body_b[i];
    const Vector3d point = vector_at(contacts.point, i);
    const Matrix3d frame = FrameOfSchema(vector_at(contacts.normal, i).normalized());
    const auto J_a = PointJacobian(frame, point - vector_at(bodies.center_of_mass, a), 1);
    if (b < 0) {
      result.AddContact(num_trees + a, J_a, {});
    } else {
      const auto J_b = PointJacobian(frame, point - vector_at(bodies.center_of_mass, b), -1);
      result.AddContact(num_trees + a, J_a, num_trees + b, J_b, {});
    }
    if (contacts.law.surface_velocity.empty()) continue;
    const Vector3d surface = frame.transpose() * vector_at(contacts.law.surface_velocity, i);
    std::vector<double>& all = result.contacts.law.surface_velocity;
    all.insert(all.end(), surface.begin(), surface.end());
  }
  const std::vector<double> surface = result.contacts.law.surface_velocity;
  result.contacts.law = arrays.contacts.law;
  result.contacts.law.surface_velocity = surface;
  AppendLaw(contacts.law, &result.contacts.law);
  return result;
}

}  // namespace sap::test
