#include "solver/problem/rigid_bodies.h"

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using Vector6d = Eigen::Matrix<double, 6, 1>;
using BodyJacobian = Eigen::Matrix<double, 3, 6, Eigen::RowMajor>;

void ExpectRightHandedFrame(const Vector3d& n) {
  const Matrix3d R = ContactFrame(n);
  EXPECT_EQ(R.col(2), n);
  EXPECT_LE((R.transpose() * R - Matrix3d::Identity()).norm(), 4e-15) << n.transpose();
  EXPECT_NEAR(R.determinant(), 1, 4e-15) << n.transpose();
}

TEST(ContactFrameTest, IsOrthonormalAndRightHandedForRandomNormals) {
  Random random(1);
  for (int i = 0; i < 10000; ++i) ExpectRightHandedFrame(RandomUnitVector(&random));
}

TEST(ContactFrameTest, IsOrthonormalAndRightHandedForTheAxes) {
  for (int axis = 0; axis < 3; ++axis) {
    ExpectRightHandedFrame(Vector3d::Unit(axis));
    ExpectRightHandedFrame(-Vector3d::Unit(axis));
  }
}

// copysign sees the sign of a zero; both sides have to give a frame.
TEST(ContactFrameTest, IsOrthonormalAndRightHandedForHorizontalNormalsOfEitherZero) {
  for (const double zero : {0.0, -0.0}) {
    for (const double angle : {0.0, 0.3, 1.6, 3.1, 4.7}) {
      ExpectRightHandedFrame({std::cos(angle), std::sin(angle), zero});
    }
  }
}

TEST(ContactFrameTest, IsOrthonormalAndRightHandedNextToThePoles) {
  for (const double sign : {1.0, -1.0}) {
    for (const double tilt : {1e-300, 1e-17, 1e-9, 1e-4}) {
      ExpectRightHandedFrame(Vector3d(tilt, -2 * tilt, sign).normalized());
    }
  }
}

// A tangent may be off by 1e-6 in length and angle.
TEST(ContactFrameTest, IsOrthonormalAndRightHandedForTangentsThatAreNearlyOrthogonal) {
  Random random(6);
  for (int i = 0; i < 1000; ++i) {
    const Vector3d n = RandomUnitVector(&random);
    const Vector3d exact = n.cross(RandomUnitVector(&random)).normalized();
    const Matrix3d R = ContactFrame(n, exact + 1e-6 * RandomUnitVector(&random));
    EXPECT_EQ(R.col(2), n);
    EXPECT_LE((R.transpose() * R - Matrix3d::Identity()).norm(), 4e-15) << n.transpose();
    EXPECT_NEAR(R.determinant(), 1, 4e-15) << n.transpose();
    EXPECT_LE((R.col(0) - exact).norm(), 2e-6);
  }
}

TEST(ContactFrameTest, IsContinuousAwayFromTheEquator) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const Vector3d n = RandomUnitVector(&random);
    const Vector3d near = (n + 1e-8 * RandomUnitVector(&random)).normalized();
    if (std::signbit(n.z()) != std::signbit(near.z())) continue;
    EXPECT_LE((ContactFrame(n) - ContactFrame(near)).norm(), 1e-7);
  }
}

TEST(RigidBodiesTest, DynamicsMatrixGivesTheKineticEnergy) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const double mass = LogUniform(&random, 1e-6, 1e6);
    const Eigen::MatrixXd I = RandomDynamicsMatrix(&random, 3, 0.1, 2);
    const double inertia[6] = {I(0, 0), I(1, 1), I(2, 2), I(0, 1), I(0, 2), I(1, 2)};
    Eigen::Matrix<double, 6, 6, Eigen::RowMajor> A;
    A.setConstant(std::numeric_limits<double>::quiet_NaN());
    WriteBodyDynamicsMatrix(mass, inertia, A.data());
    EXPECT_EQ(A, A.transpose());
    const Vector6d v = UniformVector(&random, 6, -1, 1);
    const double energy =
        0.5 * mass * v.head<3>().squaredNorm() + 0.5 * v.tail<3>().dot(I * v.tail<3>());
    EXPECT_NEAR(0.5 * v.dot(A * v), energy, 1e-14 * energy);
  }
}

// Where a point fixed to the body is after it has moved for a time with velocity v.
Vector3d MovedPoint(const Vector3d& center, const Vector3d& r, const Vector6d& v, double time) {
  const Vector3d turn = time * v.tail<3>();
  const double angle = turn.norm();
  const Matrix3d rotation =
      angle > 0 ? Eigen::AngleAxisd(angle, turn / angle).toRotationMatrix() : Matrix3d::Identity();
  return center + time * v.head<3>() + rotation * r;
}

TEST(RigidBodiesTest, JacobianIsHowThePointMovesWithTheBody) {
  Random random(4);
  for (int i = 0; i < 1000; ++i) {
    const Vector3d center = UniformVector(&random, 3, -1, 1);
    const Vector3d r = UniformVector(&random, 3, -1, 1);
    const Vector6d v = UniformVector(&random, 6, -1, 1);
    const Matrix3d R = ContactFrame(RandomUnitVector(&random));
    constexpr double kTime = 1e-5;
    const Vector3d moved =
        (MovedPoint(center, r, v, kTime) - MovedPoint(center, r, v, -kTime)) / (2 * kTime);
    for (const double sign : {1.0, -1.0}) {
      BodyJacobian J;
      WriteBodyJacobian(R, r, sign, J.data());
      EXPECT_LE((J * v - sign * R.transpose() * moved).norm(), 1e-9);
    }
  }
}

// Only the relative motion counts: two bodies that move as one do not slide on each other.
TEST(RigidBodiesTest, BodiesThatMoveAsOneHaveNoContactVelocity) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    const Vector3d point = UniformVector(&random, 3, -1, 1);
    const Vector3d center_a = UniformVector(&random, 3, -1, 1);
    const Vector3d center_b = UniformVector(&random, 3, -1, 1);
    const Vector3d spin = UniformVector(&random, 3, -1, 1);
    const Vector3d origin_velocity = UniformVector(&random, 3, -1, 1);
    const auto motion_of = [&](const Vector3d& center) {
      const Vector3d linear = origin_velocity + spin.cross(center);
      Vector6d v;
      for (int k = 0; k < 3; ++k) {
        v[k] = linear[k];
        v[3 + k] = spin[k];
      }
      return v;
    };
    const Matrix3d R = ContactFrame(RandomUnitVector(&random));
    BodyJacobian J_a, J_b;
    WriteBodyJacobian(R, point - center_a, 1, J_a.data());
    WriteBodyJacobian(R, point - center_b, -1, J_b.data());
    EXPECT_LE((J_a * motion_of(center_a) + J_b * motion_of(center_b)).norm(), 1e-14);
  }
}

}  // namespace
}  // namespace sap::test
