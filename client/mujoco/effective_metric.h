// The metric of MuJoCo's integrator `discrete`, in place of M.
//
//   A = M + diag(efm_diag) + efm_fluid + efm_K + sum_i s_i j_i j_i'
//   A a = qfrc_smooth + efm_c + efm_ca + J' f
//
// with efm_K the stiffness of flexes, and j_i the moment arms of stiff tendons and actuators and
// the Jacobians of contacts that are passive forces. A term within a tree is part of its A_t; one
// between trees is a row without bounds, R = 1 / s, v_hat = j' v_0, unless A couples trees.
// MuJoCo has computed all of it when it comes to its constraints; v* with flexes, iteratively, to
// the tolerance of the model. On a body that is a tree of its own and has no constraint, gyroscopic
// forces of the end of the step act, (A + dt d bias / d v) a = tau.
#pragma once

#include <vector>

#include "client/mujoco/couplings.h"
#include "client/mujoco/rows.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

// Adds to the blocks of M, computes v* with these blocks, without the rows, and writes the rows.
//   v_0      [nv] velocities; null: the unknown is v - v_0
//   matrix   A, whose blocks are `blocks`
void WriteEffectiveMetric(const Fields& fields, const Trees& trees, const double* v_0,
                          const double* blocks, MatrixBlocks* matrix, double* v_star,
                          RowWriter* rows);

// Writes B x [nv], where A = M + B.
void MultiplyMetric(const Fields& fields, const double* x, double* product);

// Computes v* of unconstrained bodies with gyroscopic forces; other trees keep their v*.
//   is_constrained   of each tree
//   blocks           of A
void WriteGyroscopicSteps(const Fields& fields, const Trees& trees,
                          const std::vector<bool>& is_constrained, const double* v_0,
                          const double* blocks, double* v_star);

}  // namespace sap::mujoco
