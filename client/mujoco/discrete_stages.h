// Stages of MuJoCo's integrator `discrete` before and after the solve, which it does not export.
// Others do the same on a copy of the struct mjModel with other options, which shares the arrays of
// the model: MuJoCo's functions only read both.
//
//   forces    mj_forwardSkip after the velocities, with one iteration of MuJoCo's solver
//   motion    mj_Euler without its implicit damping, v' = v + dt qacc
#pragma once

#include "client/mujoco/mujoco_calls.h"

namespace sap::mujoco {

// Controls, smooth forces, the metric A, R and a_ref of the constraints for it, and the
// acceleration without constraints, of a state whose velocities are computed. `qacc` and the
// forces of constraints become meaningless.
//
// The Python package of MuJoCo finds the model of a callback by its address: where there are
// callbacks of actuation, MuJoCo's own solver runs on the model itself, in vain.
//
// An error, where MuJoCo does not list all terms of a flex's metric: the twist of 1D flexes in 4.0,
// and before 4.0 flexes on bodies with other joints than their three slides.
EngineStatus ComputeDiscreteForces(const MujocoCalls& calls, const void* model, void* data);

// Advances activations, velocities, positions and time by `qacc`.
EngineStatus AdvanceDiscretely(const MujocoCalls& calls, const void* model, void* data);

}  // namespace sap::mujoco
