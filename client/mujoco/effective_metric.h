// The metric of MuJoCo's integrator `discrete`, in place of M.
//
//   A = M + diag(efm_diag) + efm_fluid + sum_t s_t j_t j_t' + sum_a s_a m_a m_a'
//   A a = qfrc_smooth + efm_c + efm_ca + J' f
//
// over the stiff tendons t and actuators a, with their moment arms j and m. A term within a tree is
// part of its A_t; one between trees is a row without bounds, R = 1 / s, v_hat = 0 in the unknown
// v - v_0. MuJoCo has computed all of it when it comes to its constraints.
#pragma once

#include "client/mujoco/rows.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

inline bool IsDiscrete(const Fields& fields) { return fields.integrator > mjINT_IMPLICITFAST; }

// Adds to the blocks of M, and makes v* that of the blocks: without the rows, which are written.
void WriteEffectiveMetric(const Fields& fields, const Trees& trees, double* blocks, double* v_star,
                          RowWriter* rows);

// Writes qacc of a body that is a tree of its own and has no constraint: its gyroscopic forces act
// at the end of the step, (A + dt d bias / d v) a = tau. Does nothing to other trees.
//   block   A_t
void StoreGyroscopicStep(const Fields& fields, const Trees& trees, int64_t tree,
                         const double* block);

}  // namespace sap::mujoco
