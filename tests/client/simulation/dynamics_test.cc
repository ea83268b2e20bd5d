#include "client/cpp/simulation/dynamics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace sap::simulation {
namespace {

constexpr double kDensity = 1000;

// Mass, and inertia about the center, of a shape by midpoint sums over a fine grid of its bounding
// box.
struct Moments {
  double mass{0};
  Vector3d inertia{0, 0, 0};
};

Moments MomentsByQuadrature(const Shape& shape, int cells) {
  Moments moments;
  const Vector3d cell = 2 * shape.half_extent / cells;
  for (int i = 0; i < cells; ++i) {
    for (int j = 0; j < cells; ++j) {
      for (int k = 0; k < cells; ++k) {
        const Vector3d x =
            Vector3d(i + 0.5, j + 0.5, k + 0.5).cwiseProduct(cell) - shape.half_extent;
        if (shape.kind == ShapeKind::kSphere && x.norm() > shape.radius()) continue;
        const double mass = kDensity * cell.prod();
        moments.mass += mass;
        moments.inertia += mass * (Vector3d::Constant(x.squaredNorm()) - x.cwiseAbs2());
      }
    }
  }
  return moments;
}

TEST(BodyTest, MassAndInertiaAreTheIntegralsOverTheShape) {
  const Shape box = Shape::Box({0.05, 0.03, 0.11});
  const Moments box_moments = MomentsByQuadrature(box, 100);
  const Body box_body = MakeBody(box, kDensity);
  EXPECT_NEAR(box_body.mass, box_moments.mass, 1e-10 * box_body.mass);
  // The midpoint rule is short by 1 / cells^2 for squares.
  EXPECT_TRUE(box_body.inertia.isApprox(box_moments.inertia, 2e-4));

  const Shape sphere = Shape::Sphere(0.05);
  const Moments sphere_moments = MomentsByQuadrature(sphere, 200);
  const Body sphere_body = MakeBody(sphere, kDensity);
  EXPECT_NEAR(sphere_body.mass, sphere_moments.mass, 1e-3 * sphere_body.mass);
  EXPECT_TRUE(sphere_body.inertia.isApprox(sphere_moments.inertia, 1e-3));
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

TEST(DynamicsTest, EnergyAndAngularMomentumOfATumblingBodyDriftInFirstOrder) {
  const auto drift = [](int steps) {
    Body body = Spinning({0.05, 0.03, 0.11}, {2, -1, 3});
    const double energy = KineticEnergy(body);
    const Vector3d momentum = WorldInertia(body) * body.angular_velocity;
    Coast(0.5, steps, Vector3d::Zero(), &body);
    return std::pair(
        std::abs(KineticEnergy(body) / energy - 1),
        (WorldInertia(body) * body.angular_velocity - momentum).norm() / momentum.norm());
  };
  const auto [energy_coarse, momentum_coarse] = drift(400);
  const auto [energy_fine, momentum_fine] = drift(800);
  EXPECT_LT(energy_fine, 1e-2);
  EXPECT_LT(momentum_fine, 1e-2);
  EXPECT_NEAR(energy_coarse / energy_fine, 2, 0.1);
  EXPECT_NEAR(momentum_coarse / momentum_fine, 2, 0.1);
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
