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

}  // namespace

Velocity FreeMotionVelocity(const Body& body, const Vector3d& gravity, double dt) {
  // In body axes the inertia is diagonal.
  const Vector3d omega = body.orientation.conjugate() * body.angular_velocity;
  const Vector3d torque = body.inertia.cwiseProduct(omega).cross(omega);
  return {body.velocity + dt * gravity,
          body.angular_velocity + dt * (body.orientation * torque.cwiseQuotient(body.inertia))};
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
