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

// The members that the classes of derivatives share.
class DerivativePass {
 protected:
  explicit DerivativePass(const DerivativeScope& scope)
      : scope_(scope),
        problem_(scope.problem),
        view_(scope.view),
        data_(scope.data),
        adjoint_(*scope.adjoint),
        unit_(scope.unit()),
        delassus_(scope.delassus()) {}

  const DerivativeScope& scope_;
  const ContactProblem& problem_;
  const IslandView& view_;
  const SapData& data_;
  AdjointData& adjoint_;
  const double unit_;
  const DelassusEstimate delassus_;
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

// Calls body(row, x) with x = A^-1 J_row' for these rows of the block of one tree. Not inlined,
// because its copies would make up most of the code of its callers.
template <typename Body>
[[gnu::noinline]] inline void ForInverseColumns(const DerivativeScope& scope, int slot,
                                                const double* J, DelassusRows of, Body&& body) {
  ForSize(scope.view.graph.dofs()[slot], [&](auto n) {
    WithTreeScratch(n, [&](double* x) {
      for (int row = of.begin; row < of.end; ++row) {
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

// W x of the rows by which w is estimated.
template <int rows>
inline Lanes4 MultiplyLanes(const LawMatrix<rows>& W, const Lanes4& x) {
  const DelassusRows of = RowsOf(W);
  Lanes4 product{};
  for (int r = 0; r < of.count(); ++r) {
    for (int s = 0; s < of.count(); ++s) product[r] += W(of.begin + r, of.begin + s) * x[s];
  }
  return product;
}

// The columns of A^-1 J' of one constraint in one component of coupled trees.
class CoupledColumns {
 public:
  CoupledColumns(const DerivativeScope& scope, int component, const HalfSolveFactor& factor,
                 const HalfSolve& solve)
      : graph_(scope.view.graph),
        trees_(scope.view.model.coupled_trees()),
        component_(component),
        factor_(factor),
        solve_(solve),
        scale_(factor.cholesky.scale() * scope.unit()) {}

  bool Has(int slot) const { return trees_.component_of(TreeOf(slot)) == component_; }
  // A row of A^-1 J', one lane for each row of J that w is estimated by.
  Lanes4 At(int slot, int dof) const {
    return solve_.solution(factor_, trees_.place_of(TreeOf(slot)))[dof] * scale_;
  }
  // Calls body(slot) for the trees of the component.
  template <typename Body>
  void ForSlots(Body&& body) const {
    for (const int tree : trees_.trees_of(component_)) {
      body(graph_.islands().slot_of_tree()[tree]);
    }
  }

 private:
  int TreeOf(int slot) const { return graph_.islands().tree_of_slot()[slot]; }

  const ConstraintGraph& graph_;
  const CoupledTrees& trees_;
  int component_;
  const HalfSolveFactor& factor_;
  const HalfSolve& solve_;
  double scale_;
};

// Calls body(CoupledColumns) for each component of coupled trees whose inverse is in w of
// constraint i, estimated by these rows of a contact: with the trees of the constraint alone, or
// with all trees of the component.
template <int index, typename Body>
inline void ForCoupledColumns(const DerivativeScope& scope, PoolIndex<index> pool, int unit, int i,
                              [[maybe_unused]] DelassusRows of, HalfSolve::Fronts fronts,
                              Body&& body) {
  const DelassusEstimate delassus = scope.delassus();
  if (!scope.view.range().coupled) return;
  const auto& jacobians = scope.view.model.pools[pool].jacobians;
  const auto& layout = scope.view.layout(pool);
  const auto finish = [&](int component, const HalfSolveFactor& factor, HalfSolve& solve) {
    solve.RunBack(factor, fronts, StopToken());
    body(CoupledColumns(scope, component, factor, solve));
  };
  if constexpr (IsRow(pool)) {
    delassus.ForComponents(layout, jacobians, unit, finish);
  } else {
    const ContactGroup& group = layout.groups()[unit];
    delassus.ForComponents(layout.parts_of(group), jacobians.of(group, i),
                           PoolAt<index>::Laws::kRows, of, finish);
  }
}

}  // namespace sap
