// Actuators whose force depends on length and velocity of their transmission: implicit.
//
// An actuator with moment arms m, length l and velocity l' = m' v has at the end of the step the
// force
//
//   f = clamp(f_0 - dt k_p m' v - k_v (m' v - l'_0), lower, upper),   k_p = -df/dl,   k_v = -df/dl'
//
// k_p and k_v are used only if positive, that is stabilizing. They are exact where the force is
// affine, as that of servos, dampers and PID controllers; of a DC motor they are the slopes of
// back-EMF, controller and friction at the beginning of the step. Without limits, and in one tree,
// such a force is part of A. With limits of its own or of its tendon (`forcerange`,
// `actuatorfrcrange`), or over several trees, it is a constraint row,
//
//   J = m',   R = 1 / (dt (dt k_p + k_v)),   v_hat = 0,   u = f_0 + k_v l'_0,   bounds = limits
//
// which is exact. If a joint has `actuatorfrcrange`, one row has the sum of all forces on it.
//
// Limits of exactness: an actuator keeps its force of the beginning of the step (a) if it acts
// through a tendon or a site on a joint with `actuatorfrcrange`, (b) if it shares a tendon with
// `actuatorfrcrange` with others, (c) if it is at its own limit and shares a joint with
// `actuatorfrcrange` with others, or has a delay, or is a PID controller or DC motor. Two servos of
// one such joint that start the step within their own limits are limited by those of the joint
// only. A servo of an orientation has k_p and k_v about all three axes in A, unless it is at its
// limit. Muscles and actuators of callbacks and plugins are explicit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/mujoco/implicit_forces.h"
#include "client/mujoco/rows.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

// How an actuator enters the problem.
enum class ServoMode : int64_t { kExplicit, kInA, kOwnRow, kJointRow };

// One actuator of one step. A caller keeps it as numbers until the solution is known.
struct Servo {
  double k_p = 0.0;
  double k_v = 0.0;
  double force = 0.0;  // f_0 without limits
  double lower = -kInfinity;
  double upper = kInfinity;
  ServoMode mode = ServoMode::kExplicit;
};
inline constexpr int64_t kServoDoubles = 6;
static_assert(sizeof(Servo) == kServoDoubles * sizeof(double));

// Adds dt D + dt^2 K of the actuators to A, and writes their rows; where the model's flags disable
// actuators, nothing.
//   servos   [nactuator] output
void AddServos(const Fields& fields, const Trees& trees, std::span<Servo> servos,
               ImplicitForces* implicit);

// Writes the forces at the end of the step to actuator_force and qfrc_actuator.
//   velocity      [nv] solution
//   row_impulse   of the rows of actuators
//   joint         of the rows of actuators; -1: none
void StoreServoForces(const Fields& fields, std::span<const Servo> servos, const double* velocity,
                      std::span<const int32_t> joint, const double* row_impulse);

}  // namespace sap::mujoco
