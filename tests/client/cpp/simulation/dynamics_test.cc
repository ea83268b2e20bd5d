#include "client/cpp/simulation/dynamics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace sap::simulation {
namespace {

constexpr double kDensity = 1000;

TEST(BodyTest, MassAndInertiaOfABoxAreTheIntegralsOverIt) {
  constexpr int kCells = 20;
  const Vector3d half(0.05, 0.03, 0.11);
  const Vector3d cell = 2 * half / kCells;
  double mass = 0;
  Vector3d inertia = Vector3d::Zero();
  for (int i = 0; i < kCells * kCells * kCells; ++i) {
    const Vector3d place(i % kCells, i / kCells % kCells, i / kCells / kCells);
    const Vector3d x = (place + Vector3d::Constant(0.5)).cwiseProduct(cell) - half;
    mass += kDensity * cell.prod();
    inertia += kDensity * cell.prod() * (Vector3d::Constant(x.squaredNorm()) - x.cwiseAbs2());
  }
  const Body body = MakeBody(Shape::Box(half), kDensity);
  EXPECT_NEAR(body.mass, mass, 1e-12);
  // The midpoint rule is short by 1 / cells^2 for squares.
  EXPECT_TRUE(inertia.isApprox((1 - 1.0 / (kCells * kCells)) * body.inertia, 1e-12));
}

TEST(BodyTest, MassAndInertiaOfASphereAreTheSumsOverItsDiscs) {
  constexpr int kDiscs = 2000;
  const double radius = 0.05;
  double mass = 0;
  double inertia = 0;
  for (int i = 0; i < kDiscs; ++i) {
    const double z = radius * (2 * (i + 0.5) / kDiscs - 1);
    const double square = radius * radius - z * z;
    const double disc = kDensity * std::numbers::pi * square * 2 * radius / kDiscs;
    mass += disc;
    inertia += disc * square / 2;
  }
  const Body body = MakeBody(Shape::Sphere(radius), kDensity);
  EXPECT_NEAR(body.mass, mass, 1e-6 * mass);
  EXPECT_TRUE(body.inertia.isApprox(Vector3d::Constant(inertia), 1e-6));
}

TEST(BodyTest, ThePaperSphereAndBoxHaveThePaperMasses) {
  EXPECT_NEAR(MakeBody(Shape::Sphere(0.05), kDensity).mass, 0.524, 5e-4);
  EXPECT_NEAR(MakeBody(Shape::Box(Vector3d::Constant(0.05)), kDensity).mass, 1.0, 1e-12);
}

Body Spinning(const Vector3d& half_extent, const Vector3d& angular_velocity) {
  Body body = MakeBody(Shape::Box(half_extent), kDensity);
  body.orientation = Quaterniond(0.4, -0.2, 0.7, 0.1).normalized();
  body.angular_velocity = angular_velocity;
  return body;
}

void Coast(double time, int steps, const Vector3d& gravity, Body* body) {
  const double dt = time / steps;
  for (int i = 0; i < steps; ++i) Advance(FreeMotionVelocity(*body, gravity, dt), dt, body);
}

TEST(DynamicsTest, WorldInertiaIsTheBodyInertiaSeenFromTheWorld) {
  const Body body = Spinning({0.05, 0.03, 0.11}, {0, 0, 0});
  const Matrix3d I = WorldInertia(body);
  for (int axis = 0; axis < 3; ++axis) {
    const Vector3d principal = body.orientation * Vector3d::Unit(axis);
    EXPECT_TRUE((I * principal).isApprox(body.inertia[axis] * principal, 1e-13));
  }
}

TEST(DynamicsTest, FreeFallIsOffTheParabolaByHalfAStepOfSpeed) {
  // Semi-implicit Euler: x_n = x_0 + n dt v_0 + g dt^2 n (n + 1) / 2, v_n = v_0 + n dt g.
  const Vector3d gravity(0.3, 0, -9.81);
  Body body = MakeBody(Shape::Sphere(0.05), kDensity);
  body.velocity = {1, -2, 3};
  const double time = 1.5;
  Coast(time, 150, gravity, &body);
  const Vector3d parabola = Vector3d(1, -2, 3) * time + 0.5 * gravity * time * time;
  EXPECT_TRUE(body.velocity.isApprox(Vector3d(1, -2, 3) + time * gravity, 1e-12));
  EXPECT_TRUE(body.position.isApprox(parabola + 0.5 * 0.01 * time * gravity, 1e-12));
}

TEST(DynamicsTest, ABodySpinningAboutAnAxisOfSymmetryTurnsByTheExactAngle) {
  Body body = MakeBody(Shape::Box(Vector3d::Constant(0.05)), kDensity);
  const Vector3d axis = Vector3d(1, 2, -0.5).normalized();
  body.angular_velocity = 40 * axis;
  Coast(1, 100, Vector3d::Zero(), &body);
  const Matrix3d exact = Eigen::AngleAxisd(40, axis).toRotationMatrix();
  EXPECT_LT((body.rotation() - exact).norm(), 1e-11);
  EXPECT_LT((body.angular_velocity - 40 * axis).norm(), 1e-11);
  EXPECT_NEAR(body.orientation.norm(), 1, 1e-15);
}

// The free symmetric top turns about its angular momentum L at |L| / I_1 while it spins about its
// own axis at (1 - I_3 / I_1) omega_3: R(t) = exp(t L / I_1) R(0) exp(t (1 - I_3 / I_1) omega_3
// e_3).
double SymmetricTopError(int steps) {
  const double time = 0.5;
  Body body = Spinning({0.05, 0.05, 0.11}, {2, -1, 3});
  const Matrix3d start = body.rotation();
  const Vector3d momentum = WorldInertia(body) * body.angular_velocity;
  const double omega_3 = (start.transpose() * body.angular_velocity).z();
  const double ratio = body.inertia.z() / body.inertia.x();
  const Matrix3d exact =
      Eigen::AngleAxisd(time * momentum.norm() / body.inertia.x(), momentum.normalized()) * start *
      Eigen::AngleAxisd(time * (1 - ratio) * omega_3, Vector3d::UnitZ());
  Coast(time, steps, Vector3d::Zero(), &body);
  return (body.rotation() - exact).norm();
}

TEST(DynamicsTest, TheSymmetricTopPrecessesAsInClosedFormToFirstOrder) {
  const double coarse = SymmetricTopError(400);
  const double fine = SymmetricTopError(800);
  EXPECT_LT(fine, 1e-2);
  EXPECT_NEAR(coarse / fine, 2, 0.1);
}

// Half extents, spin [rad/s] and time step [s], up to 300 rad in a step.
struct Spin {
  Vector3d half_extent;
  Vector3d angular_velocity;  // body axes
  double dt;
};

class SpinningBodyTest : public ::testing::TestWithParam<Spin> {};

TEST_P(SpinningBodyTest, KeepsItsEnergyAndTheLengthOfItsAngularMomentum) {
  const Spin& spin = GetParam();
  Body body = Spinning(spin.half_extent, {0, 0, 0});
  body.angular_velocity = body.orientation * spin.angular_velocity;
  const double energy = KineticEnergy(body);
  const double momentum = (WorldInertia(body) * body.angular_velocity).norm();
  for (int i = 0; i < 2000; ++i) {
    Coast(spin.dt, 1, Vector3d::Zero(), &body);
    ASSERT_NEAR(KineticEnergy(body) / energy, 1, 1e-9) << "step " << i;
    ASSERT_NEAR((WorldInertia(body) * body.angular_velocity).norm() / momentum, 1, 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Spins, SpinningBodyTest,
                         ::testing::Values(Spin{{0.2, 0.1, 0.03}, {5, 20, 8}, 1.0 / 60},
                                           Spin{{0.2, 0.1, 0.03}, {5, 20, 8}, 1.0 / 240},
                                           Spin{{0.2, 0.1, 0.03}, {0.01, 30, 0.01}, 1.0 / 60},
                                           Spin{{0.2, 0.1, 0.03}, {20, 1, 1}, 1.0 / 60},
                                           Spin{{0.2, 0.1, 0.03}, {1, 1, 20}, 1.0 / 60},
                                           Spin{{0.3, 0.01, 0.01}, {60, 1, 3}, 1.0 / 60},
                                           Spin{{0.05, 0.03, 0.11}, {300, -200, 500}, 1.0 / 60},
                                           Spin{{0.05, 0.03, 0.11}, {1e4, 2e4, 1e3}, 1.0 / 60}));

TEST(DynamicsTest, ABodyThatSpinsAboutItsAxisOfLeastOrLargestInertiaDoesNotTumble) {
  for (const int axis : {0, 2}) {  // half extents 0.2, 0.1, 0.03: the inertia grows with the index
    Body body = Spinning({0.2, 0.1, 0.03}, {0, 0, 0});
    const Vector3d spin = Vector3d::Ones() + 19 * Vector3d::Unit(axis);
    body.angular_velocity = body.orientation * spin;
    for (int i = 0; i < 2000; ++i) {
      Coast(1.0 / 60, 1, Vector3d::Zero(), &body);
      const Vector3d omega = body.orientation.conjugate() * body.angular_velocity;
      ASSERT_GT(omega[axis], 0.97 * omega.norm()) << "axis " << axis << ", step " << i;
    }
  }
}

TEST(DynamicsTest, TheAngularMomentumOfATumblingBodyTurnsInFirstOrder) {
  const auto drift = [](int steps) {
    Body body = Spinning({0.05, 0.03, 0.11}, {2, -1, 3});
    const Vector3d momentum = WorldInertia(body) * body.angular_velocity;
    Coast(0.5, steps, Vector3d::Zero(), &body);
    return (WorldInertia(body) * body.angular_velocity - momentum).norm() / momentum.norm();
  };
  const double coarse = drift(400);
  const double fine = drift(800);
  EXPECT_LT(fine, 1e-2);
  EXPECT_NEAR(coarse / fine, 2, 0.1);
}

TEST(DynamicsTest, KineticEnergyIsThatOfItsMassPoints) {
  Body body = Spinning({0.05, 0.03, 0.11}, {2, -1, 3});
  body.velocity = {0.3, -0.4, 0.2};
  // Eight points at +-h / sqrt(3) have the mass, center and inertia of a box.
  double energy = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const Vector3d sign((corner & 1) ? 1 : -1, (corner & 2) ? 1 : -1, (corner & 4) ? 1 : -1);
    const Vector3d arm =
        body.orientation * sign.cwiseProduct(body.shape.half_extent) / std::numbers::sqrt3;
    const Vector3d velocity = body.velocity + body.angular_velocity.cross(arm);
    energy += 0.5 * body.mass / 8 * velocity.squaredNorm();
  }
  EXPECT_NEAR(KineticEnergy(body), energy, 1e-12 * energy);
}

}  // namespace
}  // namespace sap::simulation
