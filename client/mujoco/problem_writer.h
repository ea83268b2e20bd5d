// Writes the problem of a state to buffers, and the forces of its solution to the state.
#pragma once

#include "client/mujoco/couplings.h"
#include "client/mujoco/fields.h"
#include "client/mujoco/python_calls.h"
#include "client/mujoco/trees.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/problem_fields.h"

namespace sap::mujoco {

// Determines the layout of the problem with these flags, whose buffers are to be made.
void MeasureProblem(const Fields& fields, const Trees& trees, const Couplings& couplings,
                    int32_t flags, sap_mujoco_problem* problem);

// Writes the problem that was measured. J v_0 is in its place, except with SAP_MUJOCO_CHANGE.
void WriteProblem(const Fields& fields, const Trees& trees, const Couplings& couplings,
                  const sap_mujoco_material& material, sap_mujoco_problem* problem);

// The problem that was written, in its buffers.
ContactProblemView ViewOf(const Fields& fields, const sap_mujoco_problem& problem);

// Writes the forces of a solution to the state of which the problem is.
void StoreForces(const Fields& fields, const sap_mujoco_problem& problem,
                 const ContactSolution& solution);

}  // namespace sap::mujoco
