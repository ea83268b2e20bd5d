#include "solver/problem/rigid_bodies.h"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

namespace sap {

Eigen::Matrix3d ContactFrame(const Eigen::Vector3d& n) {
  const double s = std::copysign(1.0, n.z());
  const double a = -1.0 / (s + n.z());
  const double b = n.x() * n.y() * a;
  Eigen::Matrix3d R;
  R.col(0) << 1.0 + s * n.x() * n.x() * a, s * b, -s * n.x();
  R.col(1) << b, s + n.y() * n.y() * a, -n.y();
  R.col(2) = n;
  return R;
}

Eigen::Matrix3d ContactFrame(const Eigen::Vector3d& n, const Eigen::Vector3d& tangent) {
  const Eigen::Vector3d t1 = (tangent - n.dot(tangent) * n).normalized();
  Eigen::Matrix3d R;
  R.col(0) = t1;
  R.col(1) = n.cross(t1);
  R.col(2) = n;
  return R;
}

void WriteBodyDynamicsMatrix(double mass, const double* inertia, double* A) {
  std::fill(A, A + 36, 0.0);
  for (int i = 0; i < 3; ++i) {
    A[7 * i] = mass;
    A[7 * (i + 3)] = inertia[i];
  }
  A[6 * 3 + 4] = A[6 * 4 + 3] = inertia[3];
  A[6 * 3 + 5] = A[6 * 5 + 3] = inertia[4];
  A[6 * 4 + 5] = A[6 * 5 + 4] = inertia[5];
}

void WriteBodyJacobian(const Eigen::Matrix3d& R, const Eigen::Vector3d& r, double sign, double* J) {
  for (int row = 0; row < 3; ++row) {
    const Eigen::Vector3d e = sign * R.col(row);
    const Eigen::Vector3d r_cross_e = r.cross(e);
    for (int i = 0; i < 3; ++i) {
      J[6 * row + i] = e[i];
      J[6 * row + 3 + i] = r_cross_e[i];
    }
  }
}

void WriteBodyAngularJacobian(const Eigen::Matrix3d& R, double sign, double* J) {
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 3; ++i) {
      J[6 * row + i] = 0.0;
      J[6 * row + 3 + i] = sign * R(i, row);
    }
  }
}

}  // namespace sap
