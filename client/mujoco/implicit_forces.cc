#include "client/mujoco/implicit_forces.h"

#include "client/c/tree_factorization.h"

namespace sap::mujoco {
ImplicitForces::ImplicitForces(const Fields& fields, const Trees& trees, MatrixBlocks* matrix,
                               RowWriter* rows, int32_t* joint)
    : fields_(fields),
      trees_(trees),
      dt_(fields.timestep),
      matrix_(matrix),
      rows_(rows),
      joint_(joint),
      withheld_(static_cast<size_t>(fields.nv)),
      is_implicit_(static_cast<size_t>(fields.ntree)) {}

void ImplicitForces::AddDamper(int64_t dof, double d) {
  is_implicit_[static_cast<size_t>(fields_.dof_treeid[dof])] = true;
  matrix_->Add(dof, dof, dt_ * d);
}

void ImplicitForces::AddSpring(int64_t dof, double k) {
  is_implicit_[static_cast<size_t>(fields_.dof_treeid[dof])] = true;
  matrix_->Add(dof, dof, dt_ * dt_ * k);
  withheld_[static_cast<size_t>(dof)] += dt_ * k * fields_.qvel[dof];
}

void ImplicitForces::AddGains(const MomentArms& m, double k, double d) {
  is_implicit_[static_cast<size_t>(fields_.dof_treeid[m.dofs.front()])] = true;
  for (size_t left = 0; left < m.dofs.size(); ++left) {
    const int32_t row = m.dofs[left];
    for (size_t right = 0; right < m.dofs.size(); ++right) {
      const int32_t column = m.dofs[right];
      const double square = m.values[left] * m.values[right];
      matrix_->Add(row, column, dt_ * (d + dt_ * k) * square);
      withheld_[static_cast<size_t>(row)] += dt_ * k * square * fields_.qvel[column];
    }
  }
}

void ImplicitForces::AddFluid() {
  for (int64_t tree = 0; tree < fields_.ntree; ++tree) {
    if (fields_.tree_asleep[tree] >= 0) continue;
    const int64_t first = fields_.tree_dofadr[tree];
    const int64_t dofs = fields_.tree_dofnum[tree];
    AddFluid(first, dofs, 1.0);
    if (IsPositiveDefinite(first, dofs)) {
      is_implicit_[static_cast<size_t>(tree)] = true;
    } else {
      AddFluid(first, dofs, -1.0);
    }
  }
}

void ImplicitForces::AddFluid(int64_t first, int64_t dofs, double sign) {
  for (int64_t row = first; row < first + dofs; ++row) {
    const int64_t begin = fields_.D_rowadr[row];
    for (int64_t k = begin; k < begin + fields_.D_rownnz[row]; ++k) {
      const double half = -0.5 * sign * dt_ * fields_.qDeriv[k];
      matrix_->Add(row, fields_.D_colind[k], half);
      matrix_->Add(fields_.D_colind[k], row, half);
    }
  }
}

bool ImplicitForces::IsPositiveDefinite(int64_t first, int64_t dofs) {
  const auto n = static_cast<size_t>(dofs);
  change_.assign(n, 0.0);
  GatherMatrix(first, dofs);
  SolveInPlace(factors_, change_);
  for (size_t i = 0; i < n; ++i) {
    if (!(factors_[i * n + i] > 0.0)) return false;
  }
  return true;
}

void ImplicitForces::AddRow(const MomentArms& m, double force, double gain, double offset,
                            double lower, double upper, int32_t joint) {
  for (size_t k = 0; k < m.dofs.size(); ++k) {
    rows_->Add(m.dofs[k], m.values[k]);
    withheld_[static_cast<size_t>(m.dofs[k])] += force * m.values[k];
  }
  rows_->Finish({.regularization = 1.0 / gain,
                 .force_lower = lower,
                 .force_upper = upper,
                 .force_offset = offset});
  *joint_++ = joint;
}

void ImplicitForces::MoveFreely(double* v_star) {
  for (size_t dof = 0; dof < withheld_.size(); ++dof) {
    if (withheld_[dof] == 0.0) continue;
    is_implicit_[static_cast<size_t>(fields_.dof_treeid[dof])] = true;
  }
  for (int64_t tree = 0; tree < fields_.ntree; ++tree) {
    if (!is_implicit_[static_cast<size_t>(tree)]) continue;
    MoveFreely(fields_.tree_dofadr[tree], fields_.tree_dofnum[tree], v_star);
  }
}

// Copies A of a kinematic tree to `factors_`.
void ImplicitForces::GatherMatrix(int64_t first, int64_t dofs) {
  const int64_t size = dofs * dofs;
  if (trees_.Size(trees_.OfDof(first)) == dofs) {
    const double* block = matrix_->Find(first, first);
    factors_.assign(block, block + size);
    return;
  }
  factors_.assign(static_cast<size_t>(size), 0.0);
  const auto set = [&](int64_t row, int64_t column, double value) {
    factors_[static_cast<size_t>((row - first) * dofs + column - first)] = value;
  };
  for (int64_t row = first; row < first + dofs; ++row) {
    const int64_t tree = trees_.OfDof(row);
    for (int64_t column = trees_.FirstDof(tree); column < trees_.FirstDof(tree + 1); ++column) {
      set(row, column, *matrix_->Find(row, column));
    }
    const int64_t begin = fields_.M_rowadr[row];
    for (int64_t k = begin; k < begin + fields_.M_rownnz[row]; ++k) {
      const double value = *matrix_->Find(row, fields_.M_colind[k]);
      set(row, fields_.M_colind[k], value);
      set(fields_.M_colind[k], row, value);
    }
  }
}

// Solves for the velocities of a kinematic tree.
void ImplicitForces::MoveFreely(int64_t first, int64_t dofs, double* v_star) {
  const auto n = static_cast<size_t>(dofs);
  change_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const size_t dof = static_cast<size_t>(first) + i;
    change_[i] = dt_ * (fields_.qfrc_smooth[dof] - withheld_[dof]);
  }
  GatherMatrix(first, dofs);
  SolveInPlace(factors_, change_);
  for (size_t i = 0; i < n; ++i) {
    const size_t dof = static_cast<size_t>(first) + i;
    v_star[dof] = fields_.qvel[dof] + change_[i];
  }
}

}  // namespace sap::mujoco
