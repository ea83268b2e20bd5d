// Writes the problem of a state to buffers, and the forces of its solution to the state.
#pragma once

#include <cstdint>

#include "client/mujoco/couplings.h"
#include "client/mujoco/fields.h"
#include "client/mujoco/python_calls.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

// The arguments are those of sap_mujoco_measure, sap_mujoco_build and sap_mujoco_store_forces.
sap_mujoco_layout MeasureProblem(const Fields& fields, const Trees& trees,
                                 const Couplings& couplings, int32_t flags);

void WriteProblem(const Fields& fields, const Trees& trees, const Couplings& couplings,
                  int32_t flags, double sigma, sap_mujoco_layout* layout, double* doubles,
                  uint32_t* unsigned_integers, int32_t* integers);

// A solution, as ContactSolution has it.
struct SolvedArrays {
  const double* velocity;
  const double* row_impulse;
  const double* impulse;
  const double* angular_impulse;
};

void StoreForces(const Fields& fields, int32_t flags, const sap_mujoco_layout& layout,
                 double* doubles, int32_t* integers, const SolvedArrays& solution);

}  // namespace sap::mujoco
