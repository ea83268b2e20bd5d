#include "client/mujoco/constraints.h"

#include <algorithm>
#include <tuple>

namespace sap::mujoco {
namespace {

constexpr double kLeastStiffness = 1e-15;  // divisor

// Directions in files of models have six digits or more.
constexpr double kGuided = 1e-6;
// Factor of R_n of a guided contact. Its normal impulse changes with the slip by mu |v_t| / R_n, so
// that friction has a viscous part of mu^2 / R_n, here 1e-7 of a mass or so. It is no larger, as
// R_n N^2 / 2 is part of the cost, whose rounding limits the answer.
constexpr double kGuidedScale = 1e8;
constexpr double kOpen = -1e8;  // v_hat_n of a contact that no slip closes [m/s]

bool IsFrictionLoss(int32_t kind) {
  return kind == mjCNSTR_FRICTION_DOF || kind == mjCNSTR_FRICTION_TENDON;
}

}  // namespace

std::pair<double, double> ForceBounds(const Fields& fields, int64_t row) {
  const int32_t kind = fields.efc_type[row];
  if (kind == mjCNSTR_EQUALITY) return {-kInfinity, kInfinity};
  const double loss = fields.efc_frictionloss[row];
  if (IsFrictionLoss(kind)) return {-loss, loss};
  return {0.0, kInfinity};
}

template <typename Use>
void Constraints::ForValues(int64_t row, const Use& use) const {
  if (!is_sparse_) {
    const double* values = fields_.efc_J + row * fields_.nv;
    for (int64_t dof = 0; dof < fields_.nv; ++dof) use(dof, values[dof]);
    return;
  }
  const int64_t begin = fields_.efc_J_rowadr[row];
  const int64_t end = begin + fields_.efc_J_rownnz[row];
  for (int64_t k = begin; k < end; ++k) use(fields_.efc_J_colind[k], fields_.efc_J[k]);
}

bool Constraints::IsCone(int64_t row) const {
  const int32_t kind = fields_.efc_type[row];
  return kind == mjCNSTR_CONTACT_ELLIPTIC || (as_sap_ && kind == mjCNSTR_CONTACT_PYRAMIDAL);
}

bool Constraints::IsContact(int64_t contact) const {
  const int32_t row = *fields_.contact_efc_address(contact);
  return row >= 0 && IsCone(row);
}

int Constraints::Rows(int64_t contact) const {
  const int dim = *fields_.contact_dim(contact);
  const int32_t kind = fields_.efc_type[*fields_.contact_efc_address(contact)];
  return kind == mjCNSTR_CONTACT_PYRAMIDAL ? 2 * (dim - 1) : dim;
}

void Constraints::FindParts(int64_t contact, std::vector<Part>* parts) const {
  parts->clear();
  const auto add = [&](int32_t tree) {
    const bool is_known =
        std::ranges::any_of(*parts, [&](const Part& p) { return p.tree == tree; });
    if (tree < 0 || is_known) return;
    parts->push_back({tree, trees_.FirstDof(tree), trees_.Size(tree), 0});
  };
  if (trees_.IsOfGeoms(contact)) {
    const auto [a, b] = trees_.OfContact(contact);
    add(a);
    add(b);
  } else {
    const int32_t first_row = *fields_.contact_efc_address(contact);
    for (int64_t row = first_row; row < first_row + Rows(contact); ++row) {
      ForValues(row, [&](int64_t dof, double value) {
        if (value != 0.0) add(static_cast<int32_t>(trees_.OfDof(dof)));
      });
    }
  }
  int64_t begin = 0;
  for (Part& part : *parts) {
    part.begin = begin;
    begin += 3 * part.dofs;
  }
}

template <typename Use>
void Constraints::ForContacts(const Use& use) const {
  std::vector<Part> parts;
  for (int64_t contact = 0; contact < fields_.ncon; ++contact) {
    if (!IsContact(contact)) continue;
    FindParts(contact, &parts);
    if (!parts.empty()) use(contact, std::span<const Part>(parts));
  }
}

ConstraintCounts Constraints::Count() const {
  ConstraintCounts counts;
  for (int64_t row = 0; row < fields_.nefc; ++row) {
    if (IsCone(row)) continue;
    int64_t non_zeros = 0;
    ForValues(row, [&](int64_t, double value) { non_zeros += value != 0.0; });
    counts.rows += non_zeros > 0;
    counts.non_zeros += non_zeros;
  }
  ForContacts([&](int64_t contact, std::span<const Part> parts) {
    const int64_t values = parts.back().begin + 3 * parts.back().dofs;
    ++counts.contacts;
    counts.jacobian += values;
    if (fields_.nflex > 0) counts.parts += static_cast<int64_t>(parts.size());
    if (*fields_.contact_dim(contact) > 3) {
      counts.angular += values;
      ++counts.turning;
    }
  });
  return counts;
}

void Constraints::WriteRows(const double* velocity, double sigma, int32_t* row_index,
                            RowWriter* writer) const {
  for (int64_t row = 0; row < fields_.nefc; ++row) {
    if (IsCone(row)) continue;
    const int64_t before = writer->non_zeros();
    ForValues(row, [&](int64_t dof, double value) {
      if (value != 0.0) writer->Add(dof, value);
    });
    if (writer->non_zeros() == before) continue;
    row_index[writer->rows()] = static_cast<int32_t>(row);
    RowLaw law;
    std::tie(law.force_lower, law.force_upper) = ForceBounds(fields_, row);
    if (sigma > 0.0 && IsFrictionLoss(fields_.efc_type[row])) {
      law.slip_parameter = sigma;
    } else {
      law.regularization = fields_.efc_R[row];
      law.target_velocity = Target(velocity, row, false);
    }
    writer->Finish(law);
  }
}

// v_hat of a row: at rest on its surface, or MuJoCo's.
double Constraints::Target(const double* velocity, int64_t row, bool at_rest) const {
  if (at_rest) return -(fields_.efc_vel[row] - velocity[row]);
  return velocity[row] + fields_.timestep * fields_.efc_aref[row];
}

Constraints::Axis Constraints::AxisOf(int64_t first_row, int axis, double mu) const {
  if (fields_.efc_type[first_row] != mjCNSTR_CONTACT_PYRAMIDAL) {
    return {{first_row + axis, first_row + axis}, {1.0, 0.0}};
  }
  if (axis == 0) return {{first_row, first_row + 1}, {0.5, 0.5}};
  const int64_t edge = first_row + 2 * axis - 2;
  return {{edge, edge + 1}, {0.5 / mu, -0.5 / mu}};
}

// Adds a row of efc_J to a line of a contact's Jacobian.
void Constraints::AddRow(int64_t row, double factor, int line, std::span<const Part> parts,
                         double* jacobian) const {
  const auto line_of = [&](const Part& part) { return jacobian + part.begin + line * part.dofs; };
  if (!is_sparse_) {
    for (const Part& part : parts) {
      const double* values = fields_.efc_J + row * fields_.nv + part.first_dof;
      double* sums = line_of(part);
      for (int64_t k = 0; k < part.dofs; ++k) sums[k] += factor * values[k];
    }
    return;
  }
  ForValues(row, [&](int64_t dof, double value) {
    for (const Part& part : parts) {
      const int64_t place = dof - part.first_dof;
      if (place >= 0 && place < part.dofs) line_of(part)[place] += factor * value;
    }
  });
}

// Adds to the blocks of a contact, and to the v_hat [6] of its axes.
void Constraints::WriteJacobian(int64_t contact, std::span<const Part> parts,
                                const double* velocity, double* linear, double* angular,
                                double* v_hat) const {
  const double* friction = fields_.contact_friction(contact);
  const int32_t first_row = *fields_.contact_efc_address(contact);
  for (int axis = 0; axis < *fields_.contact_dim(contact); ++axis) {
    double* jacobian = axis < 3 ? linear : angular;
    const Axis rows = AxisOf(first_row, axis, friction[std::max(axis - 1, 0)]);
    for (int i = 0; i < 2; ++i) {
      const double factor = rows.factor[i];
      if (factor == 0.0) continue;
      v_hat[axis] += factor * Target(velocity, rows.row[i], as_sap_ && axis > 0);
      AddRow(rows.row[i], factor, kLineOfAxis[axis], parts, jacobian);
    }
  }
}

// Writes the trees of a contact; `part_tree` advances.
void Constraints::WriteParts(std::span<const Part> parts, int64_t i, const ContactArrays& arrays,
                             int32_t** part_tree) const {
  if (fields_.nflex == 0) {
    arrays.tree_a[i] = parts.front().tree;
    arrays.tree_b[i] = parts.size() > 1 ? parts.back().tree : -1;
    return;
  }
  arrays.parts[i] = static_cast<uint32_t>(parts.size());
  for (const Part& part : parts) *(*part_tree)++ = part.tree;
}

void Constraints::WriteFriction(int64_t contact, int64_t i, const ContactArrays& arrays) const {
  double* coefficients[] = {arrays.friction + i, arrays.friction_2 + i, arrays.torsional + i,
                            arrays.rolling + 2 * i, arrays.rolling + 2 * i + 1};
  const int dim = *fields_.contact_dim(contact);
  const double* mu = fields_.contact_friction(contact);
  for (int j = 0; j < kAxes - 1; ++j) *coefficients[j] = j + 1 < dim ? mu[j] : 0.0;
}

void Constraints::WriteNormalForce(int64_t contact, int64_t i, const ContactArrays& arrays) const {
  const int32_t row = *fields_.contact_efc_address(contact);
  const bool is_pyramid = fields_.efc_type[row] == mjCNSTR_CONTACT_PYRAMIDAL;
  const int edges = is_pyramid ? Rows(contact) : 1;
  const double* stiffness_damping_impedance = fields_.efc_KBIP + 4 * row;
  const double k =
      std::max(stiffness_damping_impedance[0] * stiffness_damping_impedance[2], kLeastStiffness);
  arrays.R_t[i] = fields_.efc_R[row + 1];
  arrays.R_n[i] = fields_.efc_R[row] / edges;
  arrays.signed_distance[i] = fields_.efc_pos[row] - fields_.efc_margin[row];
  arrays.stiffness[i] = k / arrays.R_n[i];
  arrays.relaxation_time[i] = stiffness_damping_impedance[1] / k;
}

// Square of a line of a Jacobian in the norm of diag(M)^-1.
double Constraints::Square(std::span<const Part> parts, const double* jacobian, int line) const {
  double sum = 0.0;
  for (const Part& part : parts) {
    const double* values = jacobian + part.begin + line * part.dofs;
    for (int64_t k = 0; k < part.dofs; ++k) {
      const int64_t dof = part.first_dof + k;
      const double m = fields_.M[fields_.M_rowadr[dof] + fields_.M_rownnz[dof] - 1];
      sum += values[k] * values[k] / m;
    }
  }
  return sum;
}

// Whether no motion changes the normal velocity, as under a body on a slide joint along the
// surface.
bool Constraints::IsGuided(int64_t contact, std::span<const Part> parts, const double* linear,
                           const double* angular) const {
  const double* mu = fields_.contact_friction(contact);  // t1, t2, torsional, rolling t1, t2
  const int dim = *fields_.contact_dim(contact);
  if (!(mu[0] > 0.0)) return false;
  double slip = 0.0;
  for (int axis = 1; axis < dim; ++axis) {
    const double arm = mu[axis - 1] / mu[0];
    slip += arm * arm * Square(parts, axis < 3 ? linear : angular, kLineOfAxis[axis]);
  }
  return slip > 0.0 && Square(parts, linear, kLineOfAxis[0]) <= kGuided * kGuided * slip;
}

bool Constraints::WriteContacts(const double* velocity, int32_t* contact_index,
                                const ContactArrays& arrays) const {
  double* linear = arrays.jacobian;
  double* angular = arrays.angular;
  double* target_angular = arrays.target_angular;
  int32_t* part_tree = arrays.part_tree;
  bool two_frictions = false;
  int64_t i = 0;
  ForContacts([&](int64_t contact, std::span<const Part> parts) {
    const int64_t values = parts.back().begin + 3 * parts.back().dofs;
    const bool is_turning = *fields_.contact_dim(contact) > 3;
    std::fill_n(linear, values, 0.0);
    if (is_turning) std::fill_n(angular, values, 0.0);
    double v_hat[kAxes] = {};
    WriteJacobian(contact, parts, velocity, linear, angular, v_hat);
    for (int axis = 0; axis < 3; ++axis) arrays.target[3 * i + kLineOfAxis[axis]] = v_hat[axis];
    WriteFriction(contact, i, arrays);
    WriteNormalForce(contact, i, arrays);
    if (as_sap_ && IsGuided(contact, parts, linear, angular)) {
      double& v_hat_n = arrays.target[3 * i + kLineOfAxis[0]];
      v_hat_n = v_hat_n > 0.0 ? kGuidedScale * v_hat_n : kOpen;
      arrays.R_n[i] *= kGuidedScale;
    }
    two_frictions |= arrays.friction[i] != arrays.friction_2[i];
    WriteParts(parts, i, arrays, &part_tree);
    linear += values;
    if (is_turning) {
      for (int axis = 3; axis < kAxes; ++axis) target_angular[kLineOfAxis[axis]] = v_hat[axis];
      target_angular += 3;
      angular += values;
    }
    contact_index[i++] = static_cast<int32_t>(contact);
  });
  return two_frictions;
}

}  // namespace sap::mujoco
