// The stages of mj_step before and after its constraint solver, for steps of the C interface, of
// the Python package and of judges.
//
// MuJoCo moves its arrays at each stage, except those of fixed sizes: Fields that were read before
// it have those of constraints and contacts no longer.
#pragma once

#include "client/mujoco/fields.h"
#include "client/mujoco/mujoco_calls.h"
#include "client/mujoco/python_calls.h"
#include "solver/problem/contact_solution.h"

namespace sap::mujoco {

// All that depends on positions only: kinematics, M, contacts and constraints. Under the law of SAP
// contacts in the gap, beyond their margin, have constraints, too.
EngineStatus ComputePositions(const MujocoCalls& calls, const void* model, void* data, bool as_sap);

// The constraints of contacts that were changed.
EngineStatus RemakeConstraints(const MujocoCalls& calls, const void* model, void* data);

// Controls and smooth forces of a state whose velocities are computed; under the law of SAP also
// the slopes of fluid forces.
//   calls_control   whether the program's callback computes controls
EngineStatus ComputeForces(const MujocoCalls& calls, const void* model, void* data, bool as_sap,
                           bool calls_control);

// Everything of mj_step before its constraint solver, with sensors and energies.
EngineStatus ComputeAll(const MujocoCalls& calls, const void* model, void* data, bool as_sap);

// Writes qacc and the forces of a solution, which is of the problem of this state.
void StoreSolution(const Fields& fields, const sap_mujoco_problem& problem,
                   const ContactSolution& solution);

// Computes what follows from them: J' f, sensors of acceleration, arrays by islands.
EngineStatus FinishForward(const MujocoCalls& calls, const void* model, void* data,
                           const Fields& fields, const ContactSolution& solution);

// Warns of accelerations that are not finite or huge, as mj_step does, and may reset the state.
EngineStatus CheckAcceleration(const MujocoCalls& calls, const void* model, void* data);

// Integrates activations, velocities, positions and time of a state whose forces are stored.
//   velocity   [nv] of the solution; read under the law of SAP, except with `discrete`
EngineStatus Integrate(const MujocoCalls& calls, const void* model, void* data,
                       const Fields& fields, bool as_sap, const double* velocity);

}  // namespace sap::mujoco
