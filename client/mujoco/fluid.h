// Forces of a fluid, implicit under the law of SAP: their slopes with respect to velocities are
// those of MuJoCo's own derivative, which it has for its implicit integrators,
//
//   qDeriv = d qfrc_fluid / d qvel,   A += -dt (qDeriv + qDeriv') / 2
//
// Lift is not symmetric. Where A would not be positive definite with it, the tree has its fluid
// forces of the beginning of the step.
#pragma once

#include "client/mujoco/fields.h"
#include "client/mujoco/mujoco_calls.h"

namespace sap::mujoco {

// Whether forces of a fluid act: MuJoCo has none where springs and dampers are disabled.
bool HasFluid(const Fields& fields);

// Writes qDeriv of a state whose velocities are computed; nothing where there is no fluid.
EngineStatus ComputeFluidSlopes(const MujocoCalls& calls, const void* model, void* data);

}  // namespace sap::mujoco
