#include "client/mujoco/dynamics.h"

#include <algorithm>
#include <cmath>

#include "client/mujoco/fluid.h"
#include "client/mujoco/polynomial.h"
#include "client/mujoco/tendons.h"

namespace sap::mujoco {
namespace {

// Springs of a joint. Of rotations in space, whose spring turns back by the rotation vector, k
// bounds the stiffness about every axis.
void AddSprings(const Fields& fields, int64_t joint, ImplicitForces* implicit) {
  double k = fields.jnt_stiffness[joint];
  const int32_t kind = fields.jnt_type[joint];
  const bool is_scalar = kind == mjJNT_HINGE || kind == mjJNT_SLIDE;
  if (is_scalar) {
    const int32_t place = fields.jnt_qposadr[joint];
    k = Slope(k, PolynomialOf(fields.jnt_stiffnesspoly, joint),
              std::abs(fields.qpos[place] - fields.qpos_spring[place]));
  }
  if (k == 0.0) return;
  const int dofs = is_scalar ? 1 : kind == mjJNT_FREE ? 6 : 3;
  for (int i = 0; i < dofs; ++i) implicit->AddSpring(fields.jnt_dofadr[joint] + i, k);
}

// Dampers and springs of joints.
void AddJoints(const Fields& fields, ImplicitForces* implicit) {
  if (!(fields.disableflags & mjDSBL_DAMPER)) {
    for (int64_t dof = 0; dof < fields.nv; ++dof) {
      const double d = Slope(fields.dof_damping[dof], PolynomialOf(fields.dof_dampingpoly, dof),
                             std::abs(fields.qvel[dof]));
      if (d != 0.0) implicit->AddDamper(dof, d);
    }
  }
  if (fields.disableflags & mjDSBL_SPRING) return;
  for (int64_t joint = 0; joint < fields.njnt; ++joint) AddSprings(fields, joint, implicit);
}

bool IsWarm(const Fields& fields) { return !(fields.disableflags & mjDSBL_WARMSTART); }

}  // namespace

void WriteDynamicsMatrix(const Fields& fields, MatrixBlocks* matrix) {
  matrix->Clear();
  for (int64_t row = 0; row < fields.nv; ++row) {
    const int64_t begin = fields.M_rowadr[row];
    for (int64_t k = begin; k < begin + fields.M_rownnz[row]; ++k) {
      const int64_t column = fields.M_colind[k];
      *matrix->Find(row, column) = fields.M[k];
      if (double* entry = matrix->Find(column, row); entry != nullptr) *entry = fields.M[k];
    }
  }
}

void WriteVelocities(const Fields& fields, bool is_sap, double* v_star, double* guess) {
  const bool is_warm = !is_sap && IsWarm(fields);
  for (int64_t i = 0; i < fields.nv; ++i) {
    v_star[i] = fields.qvel[i] + fields.timestep * fields.qacc_smooth[i];
    guess[i] = fields.qvel[i];
    if (is_warm) guess[i] += fields.timestep * fields.qacc_warmstart[i];
  }
}

void WriteChanges(const Fields& fields, double* v_star, double* guess) {
  const double* begin = IsWarm(fields) ? fields.qacc_warmstart : fields.qacc_smooth;
  for (int64_t i = 0; i < fields.nv; ++i) {
    v_star[i] = fields.timestep * fields.qacc_smooth[i];
    guess[i] = fields.timestep * begin[i];
  }
}

void MakeForcesImplicit(const Fields& fields, const Trees& trees, std::span<Servo> servos,
                        MatrixBlocks* matrix, double* v_star, RowWriter* rows, int32_t* joint) {
  ImplicitForces implicit(fields, trees, matrix, rows, joint);
  AddJoints(fields, &implicit);
  AddServos(fields, trees, servos, &implicit);
  AddTendons(fields, trees, &implicit);
  if (HasFluid(fields)) implicit.AddFluid();
  implicit.MoveFreely(v_star);
}

}  // namespace sap::mujoco
