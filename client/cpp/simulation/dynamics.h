// Motion of a rigid body over one time step: its free-motion velocity, and its pose from the
// velocity at the end of the step.
//
//   v*     = v + dt g
//   omega* = omega - dt I^-1 (omega x I omega)          I: world axes, at the start of the step
//   x     <- x + dt v,   q <- exp(dt omega / 2) q       v, omega: at the end of the step
//
// Semi-implicit Euler, as in [Castro et al. 2021, Section III]: first order in dt.
#pragma once

#include <span>

#include "client/cpp/simulation/body.h"

namespace sap::simulation {

struct Velocity {
  Vector3d linear;   // of the center of mass [m/s]
  Vector3d angular;  // [rad/s]
};

// Velocity at the end of a step of length dt without contact.
Velocity FreeMotionVelocity(const Body& body, const Vector3d& gravity, double dt);

// Sets the velocity of the body and moves it by dt.
void Advance(const Velocity& velocity, double dt, Body* body);

// Inertia about the center of mass in world axes.
Matrix3d WorldInertia(const Body& body);

double KineticEnergy(const Body& body);
double KineticEnergy(std::span<const Body> bodies);

}  // namespace sap::simulation
