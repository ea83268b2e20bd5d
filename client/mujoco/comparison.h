// How far a recorded velocity is from an exact one, by tree and by island.
//
//   error = |v - v*| / max(|v*|, |d|, slow sqrt(tr M / n)),   |x|^2 = x' M x
//
// with d the change of velocity that constraints make, and n the number of dofs; of all trees, and
// of those of one island. A tree without constraints is an island of its own. The cost of a solve
// is strongly convex in the norm of M, and integrators contract, so that v* is known up to
// sqrt(2 sum gap), which the bound adds to the error.
#pragma once

#include "client/mujoco/python_calls.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

// Writes tree_error [ntree], |v - v*| of each tree.
sap_mujoco_comparison Compare(const Fields& fields, const Trees& trees,
                              const sap_mujoco_velocities& velocities, double* tree_error);

}  // namespace sap::mujoco
