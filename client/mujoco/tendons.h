// Springs and dampers of tendons, and dampers of actuators: implicit.
//
// Along a tendon or a transmission with moment arms m they have at the end of the step the force
//
//   f = f_0 - dt k m' v - d (m' v - l'_0)
//
// In one tree it is part of A, over several trees a constraint row without bounds. A tendon's
// spring that is slack at the beginning of the step has k = 0. Of polynomials k and d are the
// slopes at the beginning of the step.
#pragma once

#include "client/mujoco/implicit_forces.h"

namespace sap::mujoco {

// Adds to A, and writes the rows.
void AddTendons(const Fields& fields, const Trees& trees, ImplicitForces* implicit);

}  // namespace sap::mujoco
