// Dynamics matrix A and free-motion velocity v* of a plant, tree by tree.
//
//   A v* = A v_0 + dt tau_0,   A = M + dt D
//
// with tau_0 all forces except those of constraints, at the beginning of the step, and D the
// damping of joints.
#pragma once

#include "client/c/drake/python_calls.h"

namespace sap::drake {

// Mass matrix, diagonal of D, velocity and forces, in the order of the plant.
struct PlantState {
  const double* mass;     // [nv, nv]
  const double* damping;  // [nv]
  const double* v_0;      // [nv]
  const double* force;    // [nv] tau_0
};

// Writes A of each tree (row-major, concatenated), v* [n] and the diagonal of A [n].
void WriteDynamics(const sap_drake_plant& plant, const PlantState& state, double* blocks,
                   double* v_star, double* diagonal);

}  // namespace sap::drake
