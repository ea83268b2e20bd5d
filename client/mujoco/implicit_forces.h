// Terms of implicit forces along moment arms in A, in v* and in the rows of a problem.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/mujoco/couplings.h"
#include "client/mujoco/rows.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

class ImplicitForces {
 public:
  // `matrix` is M, and becomes A = M + dt D + dt^2 K; `joint` gets the joint of each row.
  ImplicitForces(const Fields& fields, const Trees& trees, MatrixBlocks* matrix, RowWriter* rows,
                 int32_t* joint);

  // Adds a damper and a spring of one dof.
  void AddDamper(int64_t dof, double d);
  void AddSpring(int64_t dof, double k);

  // Adds the slopes of fluid forces, after everything else of A: of each tree for which A stays
  // positive definite.
  void AddFluid();

  // Adds m (dt d + dt^2 k) m' to the block of one tree, and dt k m m' v_0 to what is withheld.
  void AddGains(const MomentArms& m, double k, double d);

  // Writes a row.
  //   force      at the beginning of the step, which the smooth forces have
  //   gain       1 / R
  //   offset     u
  //   joint      whose actuators the row has; -1: none
  void AddRow(const MomentArms& m, double force, double gain, double offset, double lower,
              double upper, int32_t joint = -1);

  // Writes v* of the trees whose A changed, or whose smooth forces lack some that are rows.
  void MoveFreely(double* v_star);

 private:
  void AddFluid(int64_t first, int64_t dofs, double sign);
  bool IsPositiveDefinite(int64_t first, int64_t dofs);
  void GatherMatrix(int64_t first, int64_t dofs);
  void MoveFreely(int64_t first, int64_t dofs, double* v_star);

  const Fields& fields_;
  const Trees& trees_;
  double dt_;
  MatrixBlocks* matrix_;
  RowWriter* rows_;
  int32_t* joint_;
  std::vector<double> withheld_;   // [nv] what smooth forces must lack: dt K v_0, forces of rows
  std::vector<bool> is_implicit_;  // kinematic trees
  std::vector<double> factors_;    // of one tree
  std::vector<double> change_;
};

}  // namespace sap::mujoco
