#include "client/mujoco/implicit_forces.h"

#include "client/c/tree_factorization.h"

namespace sap::mujoco {
namespace {

MomentArms Arms(const int32_t* begin, const int32_t* count, const int32_t* dofs,
                const double* values, int64_t i) {
  return {{dofs + begin[i], static_cast<size_t>(count[i])}, values + begin[i]};
}

}  // namespace

double MomentArms::Times(const double* velocity) const {
  double sum = 0.0;
  for (size_t k = 0; k < dofs.size(); ++k) sum += values[k] * velocity[dofs[k]];
  return sum;
}

MomentArms ArmsOfOutput(const Fields& fields, int64_t output) {
  return Arms(fields.moment_rowadr, fields.moment_rownnz, fields.moment_colind,
              fields.actuator_moment, output);
}

MomentArms ArmsOfTendon(const Fields& fields, int64_t tendon) {
  return Arms(fields.ten_J_rowadr, fields.ten_J_rownnz, fields.ten_J_colind, fields.ten_J, tendon);
}

ImplicitForces::ImplicitForces(const Fields& fields, const Trees& trees, double* blocks,
                               RowWriter* rows, int32_t* joint)
    : fields_(fields),
      trees_(trees),
      dt_(fields.timestep),
      blocks_(blocks),
      rows_(rows),
      joint_(joint),
      withheld_(static_cast<size_t>(fields.nv)),
      is_implicit_(static_cast<size_t>(fields.ntree)) {}

void ImplicitForces::AddDamper(int64_t dof, double d) {
  is_implicit_[static_cast<size_t>(trees_.OfDof(dof))] = true;
  blocks_[trees_.Place(dof, dof)] += dt_ * d;
}

void ImplicitForces::AddSpring(int64_t dof, double k) {
  is_implicit_[static_cast<size_t>(trees_.OfDof(dof))] = true;
  blocks_[trees_.Place(dof, dof)] += dt_ * dt_ * k;
  withheld_[static_cast<size_t>(dof)] += dt_ * k * fields_.qvel[dof];
}

void ImplicitForces::AddGains(const MomentArms& m, double k, double d) {
  is_implicit_[static_cast<size_t>(trees_.OfDof(m.dofs.front()))] = true;
  for (size_t left = 0; left < m.dofs.size(); ++left) {
    const int32_t row = m.dofs[left];
    for (size_t right = 0; right < m.dofs.size(); ++right) {
      const int32_t column = m.dofs[right];
      const double square = m.values[left] * m.values[right];
      blocks_[trees_.Place(row, column)] += dt_ * (d + dt_ * k) * square;
      withheld_[static_cast<size_t>(row)] += dt_ * k * square * fields_.qvel[column];
    }
  }
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
    is_implicit_[static_cast<size_t>(trees_.OfDof(static_cast<int64_t>(dof)))] = true;
  }
  for (int64_t tree = 0; tree < trees_.count(); ++tree) {
    if (is_implicit_[static_cast<size_t>(tree)]) MoveFreely(tree, v_star);
  }
}

void ImplicitForces::MoveFreely(int64_t tree, double* v_star) {
  const auto n = static_cast<size_t>(trees_.Size(tree));
  const auto first = static_cast<size_t>(trees_.FirstDof(tree));
  const double* block = blocks_ + trees_.BlockStart(tree);
  factors_.assign(block, block + n * n);
  change_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    change_[i] = dt_ * (fields_.qfrc_smooth[first + i] - withheld_[first + i]);
  }
  SolveInPlace(factors_, change_);
  for (size_t i = 0; i < n; ++i) v_star[first + i] = fields_.qvel[first + i] + change_[i];
}

}  // namespace sap::mujoco
