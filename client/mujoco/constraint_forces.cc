#include "client/mujoco/constraint_forces.h"

#include <algorithm>
#include <cmath>

namespace sap::mujoco {
namespace {

constexpr double kRounding = 1e-9;  // relative distance from the cone at which a contact slides

int32_t StateOfRow(const Fields& fields, int64_t row, double force) {
  const int32_t kind = fields.efc_type[row];
  if (kind == mjCNSTR_FRICTION_DOF || kind == mjCNSTR_FRICTION_TENDON) {
    const double loss = fields.efc_frictionloss[row];
    if (force >= loss) return mjCNSTRSTATE_LINEARNEG;
    return force <= -loss ? mjCNSTRSTATE_LINEARPOS : mjCNSTRSTATE_QUADRATIC;
  }
  const bool acts = kind == mjCNSTR_EQUALITY || force > 0.0;
  return acts ? mjCNSTRSTATE_QUADRATIC : mjCNSTRSTATE_SATISFIED;
}

void StoreRows(const Fields& fields, const ConstraintImpulses& impulses) {
  for (int64_t row = 0; row < fields.nefc; ++row) {  // those without non-zeros are in no problem
    fields.efc_force[row] = fields.efc_aref[row] / fields.efc_R[row];
  }
  for (size_t i = 0; i < impulses.row.size(); ++i) {
    fields.efc_force[impulses.row[i]] = impulses.row_impulse[i] / fields.timestep;
  }
  for (int64_t row = 0; row < fields.nefc; ++row) {
    const auto [lower, upper] = ForceBounds(fields, row);
    double& force = fields.efc_force[row];
    force = std::min(std::max(force, lower), upper);
    fields.efc_state[row] = StateOfRow(fields, row, force);
  }
}

// State of a contact with a force along each axis, and coefficients of friction of all but the
// first.
int32_t StateOfContact(const double* force, const double* mu, int dim) {
  if (!(force[0] > 0.0)) return mjCNSTRSTATE_SATISFIED;
  double square = 0.0;
  for (int axis = 1; axis < dim; ++axis) {
    if (mu[axis - 1] <= 0.0) continue;
    const double ratio = force[axis] / mu[axis - 1];
    square += ratio * ratio;
  }
  const bool is_sliding = std::sqrt(square) > (1.0 - kRounding) * force[0];
  return is_sliding ? mjCNSTRSTATE_CONE : mjCNSTRSTATE_QUADRATIC;
}

// Writes the force [dim] of a contact to its rows.
void StoreContact(const Fields& fields, int32_t contact, const double* axes, int32_t state) {
  const int32_t first = *fields.contact_efc_address(contact);
  const int dim = *fields.contact_dim(contact);
  double* force = fields.efc_force + first;
  int32_t* states = fields.efc_state + first;
  if (fields.efc_type[first] == mjCNSTR_CONTACT_ELLIPTIC) {
    std::copy_n(axes, dim, force);
    std::fill_n(states, dim, state);
    return;
  }
  const double both = 0.5 * axes[0] / (dim - 1);
  for (int axis = 1; axis < dim; ++axis) {
    const double half = 0.5 * axes[axis] / fields.contact_friction(contact)[axis - 1];
    force[2 * axis - 2] = both + half;
    force[2 * axis - 1] = both - half;
  }
  const bool acts = state != mjCNSTRSTATE_SATISFIED;
  std::fill_n(states, 2 * (dim - 1), acts ? mjCNSTRSTATE_QUADRATIC : mjCNSTRSTATE_SATISFIED);
}

}  // namespace

void StoreConstraintForces(const Fields& fields, const ConstraintImpulses& impulses,
                           const ContactArrays& solved) {
  StoreRows(fields, impulses);
  const double* angular = impulses.angular_impulse;
  for (size_t i = 0; i < impulses.contact.size(); ++i) {
    const int32_t contact = impulses.contact[i];
    const int dim = *fields.contact_dim(contact);
    double axes[kAxes];
    for (int axis = 0; axis < dim; ++axis) {
      const double* impulse = axis < 3 ? impulses.impulse + 3 * i : angular;
      axes[axis] = impulse[kLineOfAxis[axis]] / fields.timestep;
    }
    if (dim > 3) angular += 3;
    const double mu[] = {solved.friction[i], solved.friction_2[i], solved.torsional[i],
                         solved.rolling[2 * i], solved.rolling[2 * i + 1]};
    StoreContact(fields, contact, axes, StateOfContact(axes, mu, dim));
  }
}

void StoreGeneralizedForce(const Fields& fields, bool is_sparse) {
  std::fill_n(fields.qfrc_constraint, fields.nv, 0.0);
  for (int64_t row = 0; row < fields.nefc; ++row) {
    const double force = fields.efc_force[row];
    if (force == 0.0) continue;
    if (is_sparse) {
      const int64_t begin = fields.efc_J_rowadr[row];
      for (int64_t k = begin; k < begin + fields.efc_J_rownnz[row]; ++k) {
        fields.qfrc_constraint[fields.efc_J_colind[k]] += fields.efc_J[k] * force;
      }
    } else {
      const double* values = fields.efc_J + row * fields.nv;
      for (int64_t dof = 0; dof < fields.nv; ++dof) {
        fields.qfrc_constraint[dof] += values[dof] * force;
      }
    }
  }
}

}  // namespace sap::mujoco
