// Where the numbers of one island stand in the arrays of a problem, of its derivatives and of
// solutions: the one enumeration of them for derivatives.
#pragma once

#include <span>
#include <type_traits>

#include "solver/laws/law_inputs.h"
#include "solver/newton/sap_data.h"
#include "solver/problem/derivatives.h"

namespace sap {

// Calls visit(number, entry, scale) for the inputs of one constraint other than Jacobians: number
// is of `inputs`, in the unit of mass of the island, and scale times entry, which is of `arrays`, a
// ProblemDifferential.
template <typename Arrays, typename Visit>
void ForInputs(const ContactProblem&, int contact, double unit, ContactInputs& inputs,
               Arrays& arrays, Visit&& visit) {
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t at = 3 * static_cast<int64_t>(contact) + axis;
    visit(inputs.v_hat[axis], arrays.v_hat[at], 1.0);
    visit(inputs.surface_velocity[axis], arrays.surface_velocity[at], 1.0);
  }
  visit(inputs.mu, arrays.mu[contact], 1.0);
  visit(inputs.stiffness, arrays.stiffness[contact], 1 / unit);
  visit(inputs.relaxation_time, arrays.tau_d[contact], 1.0);
  visit(inputs.R_t, arrays.R_t[contact], unit);
  visit(inputs.R_n, arrays.R_n[contact], unit);
  visit(inputs.w, arrays.w[contact], unit);
}

template <typename Arrays, typename Visit>
void ForInputs(const ContactProblem& problem, int contact, double unit, ConeInputs& inputs,
               Arrays& arrays, Visit&& visit) {
  ForInputs(problem, contact, unit, static_cast<ContactInputs&>(inputs), arrays, visit);
  visit(inputs.mu_2, arrays.mu_2[contact], 1.0);
  visit(inputs.adhesion, arrays.adhesion[contact], 1 / unit);
  const int angular = problem.angular_contact(contact);
  if (angular < 0) return;
  for (int axis = 0; axis < 3; ++axis) {
    visit(inputs.angular_friction[axis], arrays.angular_friction[angular][axis], 1.0);
    visit(inputs.angular_v_hat[axis],
          arrays.angular_v_hat[3 * static_cast<int64_t>(angular) + axis], 1.0);
  }
}

template <typename Arrays, typename Visit>
void ForInputs(const ContactProblem& problem, int contact, double unit, HuntCrossleyInputs& inputs,
               Arrays& arrays, Visit&& visit) {
  ForInputs(problem, contact, unit, static_cast<ContactInputs&>(inputs), arrays, visit);
  auto& material = arrays.hunt_crossley[problem.contact_extra()[contact]];
  visit(inputs.material.elastic_force, material.elastic_force, 1 / unit);
  visit(inputs.material.dissipation, material.dissipation, 1.0);
  visit(inputs.material.lagged_normal_impulse, material.lagged_normal_impulse, 1 / unit);
}

template <typename Arrays, typename Visit>
void ForInputs(const ContactProblem&, int number, double unit, RowInputs& inputs, Arrays& arrays,
               Visit&& visit) {
  auto& row = arrays.rows[number];
  visit(inputs.v_hat, row.v_hat, 1.0);
  visit(inputs.offset, row.offset, 1.0);
  visit(inputs.stiffness, row.stiffness, 1 / unit);
  visit(inputs.relaxation_time, row.relaxation_time, 1.0);
  visit(inputs.force_lower, row.force_lower, 1 / unit);
  visit(inputs.force_upper, row.force_upper, 1 / unit);
  visit(inputs.force_offset, row.force_offset, 1 / unit);
  visit(inputs.given_R, row.given_R, unit);
  visit(inputs.given_w, row.given_w, unit);
  visit(inputs.slip_parameter, row.slip_parameter, 1.0);
}

// `count` entries of an array from `first` on; none where the array is empty.
template <typename Array>
auto Entries(Array& array, int64_t first, int64_t count) {
  using Value = std::remove_reference_t<decltype(array[0])>;
  return array.empty() ? std::span<Value>() : std::span<Value>(array).subspan(first, count);
}

// The entries of one tree in an array of velocities, and of matrices.
template <typename Array>
auto VelocitiesOf(const ContactProblem& problem, int tree, Array& array) {
  const int first = problem.velocity_start()[tree];
  return Entries(array, first, problem.velocity_start()[tree + 1] - first);
}

// The outputs of one constraint: of a Tangent, or of a Cotangent, whose arrays may be empty.
template <typename Value>
struct ConstraintOutputs {
  std::span<Value> impulse, velocity, angular_impulse;
};
template <int index, typename Outputs>
auto OutputsOf(const ContactProblem& problem, PoolIndex<index> pool, int64_t number,
               Outputs& outputs) {
  using Value = std::remove_reference_t<decltype(outputs.impulse[0])>;
  ConstraintOutputs<Value> of;
  if constexpr (IsRow(pool)) {
    of.impulse = Entries(outputs.row_impulse, number, 1);
    of.velocity = Entries(outputs.row_velocity, number, 1);
  } else {
    of.impulse = Entries(outputs.impulse, 3 * number, 3);
    of.velocity = Entries(outputs.contact_velocity, 3 * number, 3);
    const int64_t angular = problem.angular_contact(number);
    if (angular >= 0) of.angular_impulse = Entries(outputs.angular_impulse, 3 * angular, 3);
  }
  return of;
}

// The block of one tree of a contact in arrays laid out as ContactProblem::jacobian() and
// angular_jacobian() are.
template <typename Value>
struct JacobianBlock {
  Value* linear;
  Value* angular;  // null: none

  // Row `row` of a law of `rows` rows.
  Value* row(int row, int rows, int dofs) const {
    return row < 3 ? linear + row * dofs : angular + (row - rows + 3) * dofs;
  }
};
template <int index, typename Arrays>
auto BlockOf(const ContactProblem& problem, const IslandView& view, PoolIndex<index> pool,
             const ContactGroup& group, int i, int part, Arrays& arrays) {
  const ContactLayout& layout = view.layout(pool);
  const int contact = layout.order()[i];
  const int before = 3 * layout.source_column(group, i, part);
  using Value = std::remove_reference_t<decltype(arrays.jacobian[0])>;
  JacobianBlock<Value> block{arrays.jacobian.data() + problem.jacobian_start()[contact] + before,
                             nullptr};
  if constexpr (PoolAt<index>::Laws::kRows > 3) {
    block.angular = arrays.angular_jacobian.data() +
                    problem.angular_start()[problem.angular_contact(contact)] + before;
  }
  return block;
}

// The entries of one row in an array as ContactProblem::row_coefficients(), by those of its layout.
template <typename Array>
auto ByEntries(const ContactProblem& problem, const RowLayout& layout, int row, Array& array) {
  return array.data() + problem.row_start()[layout.order()[row]] -
         layout.parts_of_row(row).front().entry_begin;
}

// Calls body(pool, number in the problem) for the constraints of an island, and body(tree) for its
// trees.
template <typename Body>
void ForConstraintNumbers(const IslandView& view, Body&& body) {
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    for (int i = range.begin; i < range.end; ++i) body(pool, view.layout(pool).order()[i]);
  });
}
template <typename Body>
void ForTreeNumbers(const IslandView& view, Body&& body) {
  for (int slot = view.range().slot_begin; slot < view.range().slot_end; ++slot) {
    body(view.graph.islands().tree_of_slot()[slot]);
  }
}

// Calls body(tree pair, coupled pair) for the blocks of A between trees of an island.
template <typename Body>
void ForCouplings(const ContactProblem& problem, const IslandView& view, Body&& body) {
  if (!view.range().coupled) return;
  for (int p = view.range().pair_begin; p < view.range().pair_end; ++p) {
    const int coupled = view.graph.coupled_pair(p);
    if (coupled >= 0) body(view.graph.pairs()[p], problem.coupled_trees().pairs()[coupled]);
  }
}

// Calls body(double&) for the derivatives of the island in a gradient; those with respect to inputs
// that islands share are not among them.
template <typename Body>
void ForGradientOf(const ContactProblem& problem, const IslandView& view, Gradient* gradient,
                   Body&& body) {
  ProblemDifferential& arrays = gradient->problem;
  const auto all = [&](std::vector<double>& array, int64_t begin, int64_t end) {
    for (double& value : Entries(array, begin, end - begin)) body(value);
  };
  ForTreeNumbers(view, [&](int tree) {
    all(arrays.dynamics_matrix, problem.matrix_start()[tree], problem.matrix_start()[tree + 1]);
    for (std::vector<double>* values : {&arrays.v_star, &gradient->applied_impulse}) {
      all(*values, problem.velocity_start()[tree], problem.velocity_start()[tree + 1]);
    }
  });
  ForCouplings(problem, view, [&](const TreePair& pair, const CoupledPair& coupled) {
    all(arrays.coupling_block, coupled.block_start,
        coupled.block_start + static_cast<int64_t>(pair.dofs_low) * pair.dofs_high);
  });
  ForConstraintNumbers(view, [&](auto pool, int number) {
    typename PoolAt<pool>::Laws::Inputs unused;
    ForInputs(problem, number, 1, unused, arrays,
              [&](double, double& value, double) { body(value); });
    if constexpr (IsRow(pool)) {
      all(arrays.row_coefficients, problem.row_start()[number], problem.row_start()[number + 1]);
    } else {
      all(arrays.jacobian, problem.jacobian_start()[number], problem.jacobian_start()[number + 1]);
      const int angular = problem.angular_contact(number);
      if (angular < 0) return;
      all(arrays.angular_jacobian, problem.angular_start()[angular],
          problem.angular_start()[angular + 1]);
    }
  });
}

// Calls body(value) for the outputs of the island: those of a Tangent, or of a Cotangent.
template <typename Outputs, typename Body>
void ForOutputsOf(const ContactProblem& problem, const IslandView& view, Outputs& outputs,
                  Body&& body) {
  const auto all = [&](auto entries) {
    for (auto& value : entries) body(value);
  };
  ForTreeNumbers(view, [&](int tree) { all(VelocitiesOf(problem, tree, outputs.velocity)); });
  ForConstraintNumbers(view, [&](auto pool, int number) {
    const auto of = OutputsOf(problem, pool, number, outputs);
    all(of.impulse);
    all(of.velocity);
    all(of.angular_impulse);
  });
}

}  // namespace sap
