// Dynamics matrix A and free-motion velocity v* of a MuJoCo model, tree by tree.
//
// MuJoCo's own problem has A = M and v* = v_0 + dt M^-1 tau_0, with tau_0 all smooth forces at the
// beginning of the step. In that of SAP, springs, dampers and servos of joints and tendons act with
// their forces at the end of the step, linear in position and velocity about its beginning,
// tau = tau_0 - D (v - v_0) - dt K v:
//
//   A v* = A v_0 + dt (tau_0 - tau_r - dt K v_0),   A = M + dt D + dt^2 K
//
// where tau_r are the forces of those that are constraint rows. Other forces are explicit: they
// keep their value at the beginning of the step. A tree without springs, dampers and servos has
// v* = v_0 + dt M^-1 tau_0, as MuJoCo computes it.
#pragma once

#include <cstdint>
#include <span>

#include "client/mujoco/couplings.h"
#include "client/mujoco/servos.h"

namespace sap::mujoco {

// Writes MuJoCo's A = M.
void WriteDynamicsMatrix(const Fields& fields, MatrixBlocks* matrix);

// Writes MuJoCo's v*, and the guess: v_0 under the law of SAP, under MuJoCo's with the acceleration
// of the step before, from which MuJoCo's solver starts, too, unless the model disables it.
void WriteVelocities(const Fields& fields, bool is_sap, double* v_star, double* guess);

// Writes both for the unknown v - v_0: dt times MuJoCo's accelerations without constraints, and in
// the step before.
void WriteChanges(const Fields& fields, double* v_star, double* guess);

// Changes these to those of SAP, and writes the rows and servos.
//   joint   joint of each row; -1: none
void MakeForcesImplicit(const Fields& fields, const Trees& trees, std::span<Servo> servos,
                        MatrixBlocks* matrix, double* v_star, RowWriter* rows, int32_t* joint);

}  // namespace sap::mujoco
