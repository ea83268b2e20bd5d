#include "client/cpp/simulation/dynamics.h"

#include <cmath>

namespace sap::simulation {
namespace {

// exp of a rotation vector, exact to rounding for every angle.
Quaterniond Exponential(const Vector3d& rotation) {
  const double half_angle = 0.5 * rotation.norm();
  // sin(x) / x, by its series where x is close to 0.
  const double sinc =
      half_angle < 1e-4 ? 1 - half_angle * half_angle / 6 : std::sin(half_angle) / half_angle;
  const Vector3d axis = 0.5 * sinc * rotation;
  return {std::cos(half_angle), axis.x(), axis.y(), axis.z()};
}

Matrix3d CrossMatrix(const Vector3d& v) {
  Matrix3d matrix;
  matrix << 0, -v.z(), v.y(), v.z(), 0, -v.x(), -v.y(), v.x(), 0;
  return matrix;
}

// Angular velocity after a step without torque, body axes, in which the inertia is diagonal.
Vector3d SpinAfterStep(const Vector3d& inertia, const Vector3d& omega, double dt) {
  const Vector3d momentum = inertia.cwiseProduct(omega);
  const Matrix3d I = inertia.asDiagonal();
  const Matrix3d rows = I - 0.5 * dt * (CrossMatrix(momentum) - CrossMatrix(omega) * I);
  // Cramer's rule without its denominator, whose size the scaling takes away.
  Matrix3d cofactors;
  for (int i = 0; i < 3; ++i) {
    cofactors.row(i) = rows.row((i + 1) % 3).cross(rows.row((i + 2) % 3));
  }
  const double sign = std::copysign(1.0, rows.row(0).dot(cofactors.row(0)));
  const Vector3d step = sign * (cofactors.transpose() * momentum);
  const double length = inertia.cwiseProduct(step).norm();
  return length > 0 ? Vector3d(momentum.norm() / length * step) : omega;
}

}  // namespace

Velocity FreeMotionVelocity(const Body& body, const Vector3d& gravity, double dt) {
  const Vector3d omega = body.orientation.conjugate() * body.angular_velocity;
  return {body.velocity + dt * gravity, body.orientation * SpinAfterStep(body.inertia, omega, dt)};
}

void Advance(const Velocity& velocity, double dt, Body* body) {
  body->velocity = velocity.linear;
  body->angular_velocity = velocity.angular;
  body->position += dt * velocity.linear;
  body->orientation = (Exponential(dt * velocity.angular) * body->orientation).normalized();
}

Matrix3d WorldInertia(const Body& body) {
  const Matrix3d R = body.rotation();
  return R * body.inertia.asDiagonal() * R.transpose();
}

double KineticEnergy(const Body& body) {
  const Vector3d omega = body.orientation.conjugate() * body.angular_velocity;
  return 0.5 * body.mass * body.velocity.squaredNorm() +
         0.5 * omega.dot(body.inertia.cwiseProduct(omega));
}

double KineticEnergy(std::span<const Body> bodies) {
  double energy = 0;
  for (const Body& body : bodies) energy += KineticEnergy(body);
  return energy;
}

}  // namespace sap::simulation
