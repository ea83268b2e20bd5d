// Arguments that the functions of one island's derivatives share, and products with A^-1.
//
// Masses are in the unit of the island (SapModel) until they are written:
//
//   A / u, gamma / u, l / u, w u   so   gamma_bar u, c u, lambda u
#pragma once

#include <algorithm>

#include "solver/derivatives/adjoint_data.h"
#include "solver/model/constraint_inputs.h"
#include "solver/model/delassus.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

struct DerivativeScope {
  const ContactProblem& problem;
  const IslandView& view;
  const StopToken& stop;
  const SapData& data;
  AdjointData* adjoint;
  bool hold_delassus;

  double unit() const { return view.constants().mass_unit; }
  DelassusEstimate delassus() const { return {problem, view.graph, view.model, unit()}; }
  const double* A_inverse(int slot) const {
    return adjoint->A_inverse.data() + view.graph.matrix_start()[slot];
  }
  // The inputs of a constraint, as its law was gathered from them.
  template <int index>
  auto InputsOf(PoolIndex<index> pool, int i) const {
    using Inputs = typename PoolAt<index>::Laws::Inputs;
    auto inputs = sap::InputsOf<Inputs>(problem, view.layout(pool).order()[i], unit());
    inputs.w = adjoint->pools[pool].w[i];
    return inputs;
  }
};

// Calls body(unit, i) for constraints of units [begin, end) of a pool.
template <int index, typename Body>
inline void ForConstraintsOfUnits(const IslandView& view, PoolIndex<index> pool, int begin, int end,
                                  Body&& body) {
  for (int unit = begin; unit < end; ++unit) {
    if constexpr (IsRow(pool)) {
      body(unit, unit);
    } else {
      const ContactGroup& group = view.layout(pool).groups()[unit];
      for (int i = group.contact_begin; i < group.contact_end; ++i) body(unit, i);
    }
  }
}

// Calls body(row, x) with x = A^-1 J_row' for the three linear rows of the block of one tree. Not
// inlined, because its copies would make up most of the code of its callers.
template <typename Body>
[[gnu::noinline]] inline void ForInverseColumns(const DerivativeScope& scope, int slot,
                                                const double* J, Body&& body) {
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
