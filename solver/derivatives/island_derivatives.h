// Derivatives of the solution of one island: what both directions share, and the island as a whole.
//
// One plain Newton step polishes the velocity: with its factor, of H at the velocity before,
// HessianSystem solves for all cotangents and directions. Masses are in the unit of the island
// (SapModel) until they are written:
//
//   A / u, gamma / u, l / u, w u   so   gamma_bar u, c u, lambda u
#pragma once

#include <span>

#include "solver/derivatives/hessian_system.h"
#include "solver/derivatives/parameter_chain.h"
#include "solver/problem/derivatives.h"

namespace sap {

// What the functions of one island work on.
struct DerivativeScope {
  const ContactProblem& problem;
  const IslandView& view;
  const StopToken& stop;
  const SapData& data;
  AdjointData* adjoint;
  bool hold_delassus;

  double unit() const { return view.constants().mass_unit; }
  ParameterChain chain() const { return {problem, unit()}; }
  const double* A_inverse(int slot) const {
    return adjoint->A_inverse.data() + view.graph.matrix_start()[slot];
  }
};

// What is asked for, and where it goes. Numbers of other islands are left alone.
struct DerivativeRequest {
  std::span<const Cotangent> cotangents;
  std::span<const ProblemDifferential> directions;
  bool hold_delassus;
};
struct IslandDerivatives {
  std::span<Gradient> gradients;   // zero before
  std::span<SharedInputs> shared;  // per cotangent
  std::span<Tangent> tangents;     // zero before
  std::span<double> costs;         // per direction
  double* kink_margin;
};

// Differentiates the island at workspace->data, where `report` tells what the solve has reached;
// updates both to the polished velocity. An island without any cotangent is left as it is, unless
// there are directions.
AdjointStatus DifferentiateIsland(const ContactProblem& problem, const IslandView& view,
                                  const SolverOptions& options, const DerivativeRequest& request,
                                  const IslandFactorization& factorization, const StopToken& stop,
                                  SapWorkspace* workspace, AdjointData* adjoint,
                                  IslandReport* report, IslandDerivatives* derivatives);

// Adds dL/d(input) of one cotangent: dL/d(shared input) and, for the island, *gradient.
StepStatus AddGradient(const DerivativeScope& scope, const Cotangent& cotangent,
                       HessianSystem* system, SharedInputs* shared, Gradient* gradient);

// d(output) of the island along one direction. dJ is gathered by the way.
StepStatus AddTangent(const DerivativeScope& scope, const ProblemDifferential& direction,
                      HessianSystem* system, double* cost, Tangent* tangent);

// Calls body(unit, i) for constraints of units [begin, end) of a pool.
template <int index, typename Body>
inline void ForConstraintsOfUnits(const IslandView& view, PoolIndex<index> pool, int begin, int end,
                                  Body&& body) {
  for (int unit = begin; unit < end; ++unit) {
    if constexpr (index < kNumContactKinds) {
      const ContactPair& pair = view.layout(pool).pairs()[unit];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) body(unit, i);
    } else {
      body(unit, unit);
    }
  }
}

// The block of one tree of a contact in arrays laid out as ContactProblem::jacobian() and
// angular_jacobian() are.
template <typename Value>
struct JacobianBlock {
  Value* linear;
  Value* angular;  // null: none

  // Row `row` of a law of so many rows.
  Value* row(int row, int rows, int dofs) const {
    return row < 3 ? linear + row * dofs : angular + (row - rows + 3) * dofs;
  }
};
template <int index, typename Arrays>
inline auto BlockOf(const ContactProblem& problem, const IslandView& view, PoolIndex<index> pool,
                    const ContactPair& pair, int i, bool high, Arrays& arrays) {
  const ContactLayout& layout = view.layout(pool);
  const int contact = layout.order()[i];
  const bool swapped = layout.swapped(i);
  const int before = high == swapped ? 0 : 3 * (swapped ? pair.dofs_high : pair.dofs_low);
  using Value = std::remove_reference_t<decltype(arrays.jacobian[0])>;
  JacobianBlock<Value> block{arrays.jacobian.data() + problem.jacobian_start()[contact] + before,
                             nullptr};
  if constexpr (HasAngularRows(pool.kind())) {
    const GeneralFriction& general = problem.general_friction()[problem.contact_extra()[contact]];
    block.angular =
        arrays.angular_jacobian.data() + problem.angular_start()[general.angular_contact] + before;
  }
  return block;
}

// Calls body(row, x) with x = A^-1 J_row' for the three linear rows of the block of one tree.
template <typename Body>
inline void ForInverseColumns(const DerivativeScope& scope, int slot, const double* J,
                              Body&& body) {
  ForSize(scope.view.graph.dofs()[slot], [&](auto n) {
    WithTreeScratch(n, [&](double* x) {
      for (int row = 0; row < 3; ++row) {
        MultiplySymmetric(scope.A_inverse(slot), n, J + row * n, x);
        body(row, x);
      }
    });
  });
}

// Calls body(x) with x = A^-1 J' of one part of a row.
template <typename Body>
inline void ForInverseOfPart(const DerivativeScope& scope, const RowLayout& layout,
                             const RowJacobians& jacobians, const RowPart& part, Body&& body) {
  const int n = scope.view.graph.dofs()[part.slot];
  const double* A_inverse = scope.A_inverse(part.slot);
  WithTreeScratch(n, [&](double* x) {
    std::fill_n(x, n, 0.0);
    for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
      const double* row = A_inverse + layout.dof()[e] * static_cast<int64_t>(n);
      for (int i = 0; i < n; ++i) x[i] += jacobians.at(e) * row[i];
    }
    body(x);
  });
}

}  // namespace sap
