#include "solver/newton/accuracy_certificate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "solver/newton/dual_norm.h"
#include "solver/newton/few_rows_view.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <size_t rows>
void Scale(double factor, std::array<double, rows>* vector) {
  for (double& component : *vector) component *= factor;
}
void Scale(double factor, ContactVector<double>* vector) {
  *vector = {factor * vector->x, factor * vector->y, factor * vector->n};
}

// Bounds on the rounding errors of the impulses of units [begin, end) of a pool. Returns that of
// their costs, infinite where one of them can be negative.
template <typename View, typename PoolIndexType, typename Vectors>
double ImpulseErrors(const View& view, PoolIndexType pool, const SapData& data, int begin, int end,
                     Vectors* errors) {
  const auto& [laws, jacobians] = view.model.pools[pool];
  const auto& state = data.pools[pool];
  double cost_error = 0;
  WithLawsAt(
      laws, view.range(pool).begin, [&, &laws = laws, &jacobians = jacobians](const auto& current) {
        jacobians.ForSizes(
            view.graph, view.layout(pool), begin, end, data.v,
            [&](int i) { return laws.target_size(i); },
            [&](int i, auto& error, int terms) {
              Scale((terms + kVelocitySteps) * kUnitRoundoff, &error);
              const auto impulse_error = current.ImpulseError(i, state.v_c, state.gamma, error);
              errors->Set(i, impulse_error);
              cost_error += laws.HasNonNegativeCost(i)
                                ? CostError(state.gamma.At(i), impulse_error, error)
                                : kInfinity;
            });
      });
  return cost_error;
}

// Adds the bounds on the rounding errors of the impulses on one slot.
template <typename View, typename Size>
void AddImpulseErrors(const View& view, const SapData& data, const SapScratch& scratch, int slot,
                      Size n, double* error) {
  int terms = 4;
  ForPoolsOf(view, [&](auto pool) {
    terms += view.model.pools[pool].jacobians.NumImpulseTerms(view.layout(pool), slot);
  });
  const double sum_steps = terms * kUnitRoundoff;
  ForPoolsOf(view, [&view, &data, &scratch, slot, n, sum_steps, error](auto pool) {
    view.model.pools[pool].jacobians.AddImpulseSizes(view.layout(pool), slot, n,
                                                     scratch.pools[pool].impulse_errors, sum_steps,
                                                     data.pools[pool].gamma, error);
  });
}

// Calls body(block as columns of the tree's rows, velocity start, dofs) for the trees coupled with
// one.
template <typename Body>
void ForCoupledTrees(const IslandView& view, int slot, Body&& body) {
  const ConstraintGraph& graph = view.graph;
  for (const PairSide& side : graph.sides_of(slot)) {
    const double* block = view.model.A_block(graph, side.pair);
    if (block == nullptr) continue;
    const TreePair& pair = graph.pairs()[side.pair];
    const int other = side.is_high ? pair.low : pair.high;
    const int n = graph.dofs()[slot], m = graph.dofs()[other];
    const auto entry = [&](int i, int k) {
      return side.is_high ? block[k * n + i] : block[i * m + k];
    };
    body(entry, graph.velocity_start()[other], m);
  }
}

}  // namespace

double CoupledMomentumErrors(const IslandView& view, const SapData& data,
                             std::span<const double> from, int slot, double* error) {
  const int n = view.graph.dofs()[slot];
  const int start = view.graph.velocity_start()[slot];
  const double* A = view.model.A(view.graph, slot);
  int terms = n + 4;
  ForCoupledTrees(view, slot, [&](const auto&, int, int dofs) { terms += dofs; });
  const auto size = [&](int i) {
    return terms * kUnitRoundoff * (std::abs(data.v[i]) + std::abs(from[i]));
  };
  for (int i = 0; i < n; ++i) error[i] = 0;
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < n; ++i) error[i] += std::abs(A[k * n + i]) * size(start + k);
  }
  ForCoupledTrees(view, slot, [&](const auto& entry, int other, int dofs) {
    for (int k = 0; k < dofs; ++k) {
      for (int i = 0; i < n; ++i) error[i] += std::abs(entry(i, k)) * size(other + k);
    }
  });
  double cost_error = 0;
  for (int i = 0; i < n; ++i) {
    cost_error += std::abs(data.v[start + i] - from[start + i]) * error[i];
  }
  return cost_error;
}

namespace {

// A sign from the number of a velocity and a lane.
double Sign(uint64_t number) {
  number = (number + 1) * 0x9e3779b97f4a7c15u;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
  return (number >> 63) != 0 ? 1.0 : -1.0;
}

// By one forward substitution with the factor of A: of the gradient, and of three vectors of signs,
// since z' B^-1 z has the mean trace(B^-1) over signs z [Hutchinson 1990].
ComponentNorms FindNormsOfComponent(const IslandView& view, const SapData& data, int component,
                                    const StopToken& stop) {
  const ConstraintGraph& graph = view.graph;
  const CoupledTrees& trees = view.model.coupled_trees();
  const HalfSolveFactor factor = trees.factor(component);
  thread_local HalfSolve solve;
  solve.Start(factor.plan);
  uint64_t number = 0;
  for (const int tree : trees.trees_of(component)) {
    Lanes4* rows = solve.rows(factor, trees.place_of(tree));
    const int slot = graph.islands().slot_of_tree()[tree];
    const int start = graph.velocity_start()[slot];
    for (int i = 0; i < graph.dofs()[slot]; ++i, number += 3) {
      const double root = 1 / view.model.D()[start + i];
      rows[i] += Lanes4{data.gradient[start + i], root * Sign(number), root * Sign(number + 1),
                        root * Sign(number + 2)};
    }
  }
  solve.Run(factor, stop);
  Lanes4 sums{};
  solve.ForRows(factor.plan, [&](const Lanes4& y) { sums += y * y; });
  const double scale = factor.cholesky.scale() * view.constants().mass_unit;
  return {sums[0] * scale, (sums[1] + sums[2] + sums[3]) / 3 * scale};
}

// The same, found once at each v: the stopping test asks for them before the certificate does.
const ComponentNorms& NormsOfComponent(const IslandView& view, int component, const StopToken& stop,
                                       SapData* data) {
  const int first_tree = view.model.coupled_trees().trees_of(component).front();
  ComponentNorms& norms = data->component_norms[view.graph.islands().slot_of_tree()[first_tree]];
  if (norms.gradient2 < 0) norms = FindNormsOfComponent(view, *data, component, stop);
  return norms;
}

// Adds what the trees of a component have of the certificate, with their errors known.
void AddComponent(const IslandView& view, const SapScratch& scratch, int component,
                  const StopToken& stop, SapData* data, CertificateSums<double>* sums) {
  const ConstraintGraph& graph = view.graph;
  double error2 = 0;
  int n = 0;
  for (const int tree : view.model.coupled_trees().trees_of(component)) {
    const int slot = graph.islands().slot_of_tree()[tree];
    const int start = graph.velocity_start()[slot];
    for (int i = start; i < start + graph.dofs()[slot]; ++i) {
      const double error = view.model.D()[i] * scratch.errors[i];
      error2 += error * error;
    }
    n += graph.dofs()[slot];
  }
  const ComponentNorms& norms = NormsOfComponent(view, component, stop, data);
  const double trace = kTraceMargin * norms.trace;
  const double inflation = Inflation(n, trace);
  sums->gradient2 += inflation * norms.gradient2;
  sums->error2 += inflation * trace * error2;
}

// Adds what one slot has of the certificate. `inverse_diagonal`: by velocity, or null.
template <typename View, typename Size>
void AddSlot(const View& view, const SapData& data, int slot, Size n, const StopToken& stop,
             SapScratch* errors, double* inverse_diagonal, CertificateSums<double>* sums) {
  const ConstraintGraph& graph = view.graph;
  const int start = graph.velocity_start()[slot];
  if (view.coupled() && view.model.IsCoupled(graph, slot)) {
    double* error = errors->errors.data() + start;
    sums->cost_error += CoupledMomentumErrors(view, data, view.model.v_star(), slot, error);
    AddImpulseErrors(view, data, *errors, slot, n, error);
    return;  // AddComponent has the norms
  }
  const TreeFactor factor = view.model.A_factor(graph, slot);
  const FactoredTree<double, Size> tree{view.model.A(graph, slot), factor.entries, n, factor.ends};
  WithTreeScratch((3 * kNumLanes<double> + 1) * n, [&](double* scratch) {
    double* error = scratch + 3 * kNumLanes<double> * n;
    sums->cost_error +=
        MomentumErrors(tree, data.v.data() + start, view.model.v_star().data() + start, error);
    AddImpulseErrors(view, data, *errors, slot, n, error);
    AddDualNorms(tree, data.gradient.data() + start, error, stop,
                 reinterpret_cast<Lanes4*>(scratch), sums,
                 inverse_diagonal != nullptr ? inverse_diagonal + start : nullptr);
  });
}

}  // namespace

double NormOfGradient(const IslandView& view, const StopToken& stop, SapData* data) {
  const ConstraintGraph& graph = view.graph;
  double sum = 0;
  for (int slot = view.range().slot_begin; slot < view.range().slot_end; ++slot) {
    if (view.model.IsCoupled(graph, slot)) continue;
    const int n = graph.dofs()[slot];
    const TreeFactor factor = view.model.A_factor(graph, slot);
    WithTreeScratch(n, [&](double* x) {
      std::copy_n(data->gradient.data() + graph.velocity_start()[slot], n, x);
      HalfSolveTree(factor, n, x);
      for (int i = 0; i < n; ++i) sum += x[i] * x[i] * factor.entries[i * n + i];
    });
  }
  ForComponents(
      view, [&](int component) { sum += NormsOfComponent(view, component, stop, data).gradient2; });
  return std::sqrt(sum);
}

template <typename View>
void AddDualNormsOfIsland(const View& view, const StopToken& stop, SapData* data,
                          SapScratch* scratch, double* inverse_diagonal,
                          CertificateSums<double>* sums) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  AddChunks(view.arena, range.slot_begin, range.slot_end, kCertifySlots,
            scratch->slot_norms.data() + range.slot_begin, sums, [&](int begin, int end) {
              CertificateSums<double> part;
              if (stop.Cancelled()) return part;
              for (int slot = begin; slot < end; ++slot) {
                ForTreeSize(graph.dofs()[slot], [&](auto n) {
                  AddSlot(view, *data, slot, n, stop, scratch, inverse_diagonal, &part);
                });
              }
              return part;
            });
  ForComponents(view, [&](int component) {
    if (!stop.Cancelled()) AddComponent(view, *scratch, component, stop, data, sums);
  });
}

template void AddDualNormsOfIsland(const IslandView&, const StopToken&, SapData*, SapScratch*,
                                   double*, CertificateSums<double>*);

template <typename View>
double OptimalityGapBound(const View& view, double cost, const StopToken& stop, SapData* data,
                          SapScratch* scratch, double* gradient_error) {
  double* const inverse_diagonal =
      gradient_error != nullptr ? scratch->inverse_diagonal.data() : nullptr;
  CertificateSums<double> sums;
  int terms = view.range().num_velocities();
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange units = view.range(pool);
    auto& of_pool = scratch->pools[pool];
    AddChunks(view.arena, units.unit_begin, units.unit_end, kCertifyUnits,
              of_pool.cost_errors.data() + units.begin, &sums.cost_error, [&](int begin, int end) {
                if (stop.Cancelled()) return 0.0;
                return ImpulseErrors(view, pool, *data, begin, end, &of_pool.impulse_errors);
              });
    terms += units.end - units.begin;
  });
  AddDualNormsOfIsland(view, stop, data, scratch, inverse_diagonal, &sums);
  if (!view.constants().representable) sums.cost_error = kInfinity;
  if (gradient_error != nullptr) *gradient_error = std::sqrt(sums.error2);
  const double bound = GapBound(sums, cost, terms);
  return std::isfinite(bound) ? bound : kInfinity;
}

template double OptimalityGapBound(const IslandView&, double, const StopToken&, SapData*,
                                   SapScratch*, double*);
template double OptimalityGapBound(const FewRowsView&, double, const StopToken&, SapData*,
                                   SapScratch*, double*);

}  // namespace sap
