// MuJoCo's own step, in which this solver takes the place of MuJoCo's where it is predicted to be
// faster: the step of a program under `sap-islands run`.
#pragma once

#include "client/mujoco/mujoco_calls.h"
#include "client/mujoco/python_calls.h"

namespace sap::mujoco {

// Opens libsap_islands_mujoco.so and puts it in place, as the first call below does; those that
// follow open no file.
EngineStatus PrepareReplacement();

// Calls `function` (mj_step or mj_forward) with the solver replaced on this thread, by
// libsap_islands_mujoco.so. Returns what this solver has solved, with RK4 in all four stages.
tl::expected<sap_mujoco_certificate, EngineError> RunReplaced(const MujocoCalls& calls,
                                                              MujocoCalls::Stage function,
                                                              const void* model, void* data);

}  // namespace sap::mujoco
