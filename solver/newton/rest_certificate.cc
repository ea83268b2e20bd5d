#include "solver/newton/rest_certificate.h"

#include <limits>

#include "solver/newton/accuracy_certificate.h"

namespace sap {

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// Adds |v - v_0|_A^2 of a coupled tree. Its part of A (v - v_0) - grad l, and the bounds on its
// errors, stay in the scratch for AddComponent.
void AddCoupledSlot(const IslandView& view, const SapData& data, int slot, SapScratch* scratch,
                    RestSums<double>* sums) {
  const std::span<const double> v_0 = view.model.rest().v_0;
  const int start = view.graph.velocity_start()[slot];
  const int n = view.graph.dofs()[slot];
  double* const unbalanced = scratch->difference.data() + start;
  double change2 = 0;
  WithTreeScratch(2 * n, [&](double* difference) {
    double* const change = difference + n;
    for (int i = 0; i < n; ++i) difference[i] = data.v[start + i] - v_0[start + i];
    view.model.MultiplyA(view.graph, slot, n, difference, change);
    AddCoupledChange(view, slot, data.v, v_0, change);
    for (int i = 0; i < n; ++i) {
      change2 += difference[i] * change[i];
      unbalanced[i] = change[i] - data.gradient[start + i];
    }
  });
  sums->change2 +=
      change2 + 2 * CoupledMomentumErrors(view, data, v_0, slot, scratch->errors.data() + start);
}

// Adds what one slot has of the sums.
template <typename Size>
void AddSlot(const IslandView& view, const SapData& data, int slot, Size n, SapScratch* scratch,
             RestSums<double>* sums) {
  if (view.coupled() && view.model.IsCoupled(view.graph, slot)) {
    AddCoupledSlot(view, data, slot, scratch, sums);
    return;
  }
  const int start = view.graph.velocity_start()[slot];
  const double* v = data.v.data() + start;
  const double* v_0 = view.model.rest().v_0.data() + start;
  const TreeFactor factor = view.model.A_factor(view.graph, slot);
  const FactoredTree<double, Size> tree{view.model.A(view.graph, slot), factor.entries, n,
                                        factor.ends};
  WithTreeScratch(3 * n, [&](double* difference) {
    double* const change = difference + n;
    for (int i = 0; i < n; ++i) difference[i] = v[i] - v_0[i];
    view.model.MultiplyA(view.graph, slot, n, difference, change);
    AddRest(tree, view.model.D().data() + start, v, v_0, change, data.gradient.data() + start,
            scratch->inverse_diagonal.data() + start, difference + 2 * n, sums);
  });
}

// Calls body(velocity, row of the right-hand sides) for a tree of a component.
template <typename Body>
void ForRowsOf(const IslandView& view, const HalfSolveFactor& factor, int tree, HalfSolve* solve,
               Body&& body) {
  const int slot = view.graph.islands().slot_of_tree()[tree];
  const int start = view.graph.velocity_start()[slot];
  Lanes4* rows = solve->rows(factor, view.model.coupled_trees().place_of(tree));
  for (int i = 0; i < view.graph.dofs()[slot]; ++i) body(start + i, &rows[i]);
}

// Adds what a component of coupled trees has of the sums, and finds the diagonal of A^-1: one
// forward substitution for each four degrees of freedom of a tree.
void AddComponent(const IslandView& view, int component, const StopToken& stop, SapScratch* scratch,
                  RestSums<double>* sums) {
  const CoupledTrees& trees = view.model.coupled_trees();
  const HalfSolveFactor factor = trees.factor(component);
  const double scale = factor.cholesky.scale() * view.constants().mass_unit;
  thread_local HalfSolve solve;
  const auto squares = [&] {
    solve.Run(factor, stop);
    Lanes4 sum{};
    solve.ForRows(factor.plan, [&](const Lanes4& y) { sum += y * y; });
    return sum * scale;
  };
  double error2 = 0, trace = 0;
  int n = 0;
  solve.Start(factor.plan);
  for (const int tree : trees.trees_of(component)) {
    ForRowsOf(view, factor, tree, &solve, [&](int i, Lanes4* row) {
      (*row)[0] += scratch->difference[i];
      const double error = view.model.D()[i] * scratch->errors[i];
      error2 += error * error;
      ++n;
    });
  }
  const double unbalanced2 = squares()[0];
  for (const int tree : trees.trees_of(component)) {
    const int slot = view.graph.islands().slot_of_tree()[tree];
    const int start = view.graph.velocity_start()[slot];
    const int dofs = view.graph.dofs()[slot];
    for (int k = 0; k < dofs && !stop.Cancelled(); k += kNumLanes<double>) {
      solve.Start(factor.plan);
      Lanes4* rows = solve.rows(factor, trees.place_of(tree)) + k;
      const int count = std::min(kNumLanes<double>, dofs - k);
      for (int lane = 0; lane < count; ++lane) rows[lane][lane] += 1;
      const Lanes4 diagonal = squares();
      for (int lane = 0; lane < count; ++lane) {
        const int i = start + k + lane;
        scratch->inverse_diagonal[i] = diagonal[lane];
        trace += diagonal[lane] / (view.model.D()[i] * view.model.D()[i]);
      }
    }
  }
  const double inflation = Inflation(n, trace);
  sums->unbalanced2 += inflation * unbalanced2;
  sums->error2 += inflation * trace * error2;
  for (const int tree : trees.trees_of(component)) {
    ForRowsOf(view, factor, tree, &solve,
              [&](int i, Lanes4*) { scratch->inverse_diagonal[i] *= inflation; });
  }
}

}  // namespace

double RestDrift(const IslandView& view, double horizon, double gradient_error,
                 const StopToken& stop, const SapData& data, SapScratch* scratch) {
  if (!view.constants().representable) return kUnbounded;
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  RestSums<double> sums;
  AddChunks(view.arena, range.slot_begin, range.slot_end, kRestSlots,
            scratch->slot_rest.data() + range.slot_begin, &sums, [&](int begin, int end) {
              RestSums<double> part;
              for (int slot = begin; slot < end && !stop.Cancelled(); ++slot) {
                ForTreeSize(graph.dofs()[slot],
                            [&](auto n) { AddSlot(view, data, slot, n, scratch, &part); });
              }
              return part;
            });
  ForComponents(view, [&](int component) { AddComponent(view, component, stop, scratch, &sums); });
  const double reach =
      RestReach(sums, gradient_error, horizon, view.model.rest().time_step, range.num_velocities());
  if (!std::isfinite(reach)) return kUnbounded;
  double largest = 0;
  for (int slot = range.slot_begin; slot < range.slot_end; ++slot) {
    const int start = graph.velocity_start()[slot];
    const double* v = data.v.data() + start;
    ForTreeSize(graph.dofs()[slot], [&](auto n) {
      const double drift =
          view.model.IsBody(graph, slot)
              ? DriftOfBody(view.model.A(graph, slot), n, v, data.momentum.data() + start, horizon,
                            reach)
              : DriftOfDofs(n, v, scratch->inverse_diagonal.data() + start, horizon, reach);
      largest = drift <= largest ? largest : drift;
    });
    if (!std::isfinite(largest)) return kUnbounded;
  }
  return largest;
}

}  // namespace sap
