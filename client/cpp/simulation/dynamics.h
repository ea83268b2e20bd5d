// Motion of a rigid body over one time step: its free-motion velocity, and its pose from the
// velocity at the end of the step.
//
//   v*     = v + dt g
//   I w    = I omega + dt / 2 ((I w) x omega + (I omega) x w),   omega* = w |I omega| / |I w|
//   x     <- x + dt v,   q <- exp(dt omega / 2) q       v, omega: at the end of the step
//
// with I in world axes at the start of the step. Semi-implicit Euler, as in [Castro et al. 2021,
// Section III]: first order in dt. The gyroscopic term is linearly implicit, and I omega keeps its
// length: so a free body keeps |I omega| and its energy at every spin and step [Hirota & Kimura
// 2000, "Discretization of the Euler Top"]. An explicit term would feed it energy without bound.
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
