// Many environments over some steps, on the threads of the engine.
#pragma once

#include "client/mujoco/sap_mujoco.h"
#include "client/mujoco/sap_mujoco_handle.h"
#include "client/mujoco/stepper.h"

namespace sap::mujoco {

// As sap_mujoco_rollout, with the outcome of all environments.
sap_mujoco_outcome RollOut(const sap_mujoco* solver, const sap_mujoco_rollout_arrays& arrays,
                           const StepSettings& settings);

}  // namespace sap::mujoco
