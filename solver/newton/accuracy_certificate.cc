#include "solver/newton/accuracy_certificate.h"

#include <array>
#include <cmath>
#include <limits>

#include "solver/newton/dual_norm.h"
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
template <typename PoolIndexType, typename Vectors>
double ImpulseErrors(const IslandView& view, PoolIndexType pool, const SapData& data, int begin,
                     int end, Vectors* errors) {
  const auto& [laws, jacobians] = view.model.pools[pool];
  const auto& state = data.pools[pool];
  double cost_error = 0;
  jacobians.ForSizes(
      view.graph, view.layout(pool), begin, end, data.v,
      [&laws = laws](int i) { return laws.target_size(i); },
      [&, &laws = laws](int i, auto& error, int terms) {
        Scale((terms + kVelocitySteps) * kUnitRoundoff, &error);
        const auto impulse_error = laws.ImpulseError(i, state.v_c, state.gamma, error);
        errors->Set(i, impulse_error);
        cost_error += laws.HasNonNegativeCost(i)
                          ? CostError(state.gamma.At(i), impulse_error, error)
                          : kInfinity;
      });
  return cost_error;
}

// Adds the bounds on the rounding errors of the impulses on one slot.
template <typename Size>
void AddImpulseErrors(const IslandView& view, const SapData& data, const SapScratch& scratch,
                      int slot, Size n, double* error) {
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

// Adds what one slot has of the certificate.
template <typename Size>
void AddSlot(const IslandView& view, const SapData& data, const SapScratch& errors, int slot,
             Size n, const StopToken& stop, CertificateSums<double>* sums) {
  const ConstraintGraph& graph = view.graph;
  const int start = graph.velocity_start()[slot];
  const FactoredTree<double, Size> tree{view.model.A(graph, slot), view.model.A_factor(graph, slot),
                                        n};
  WithTreeScratch((3 * kNumLanes<double> + 1) * n, [&](double* scratch) {
    double* error = scratch + 3 * kNumLanes<double> * n;
    sums->cost_error +=
        MomentumErrors(tree, data.v.data() + start, view.model.v_star().data() + start, error);
    AddImpulseErrors(view, data, errors, slot, n, error);
    AddDualNorms(tree, data.gradient.data() + start, error, stop,
                 reinterpret_cast<Lanes4*>(scratch), sums);
  });
}

}  // namespace

double OptimalityGapBound(const IslandView& view, double cost, const SapData& data,
                          const StopToken& stop, SapScratch* scratch) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  CertificateSums<double> sums;
  int terms = range.num_velocities();
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange units = view.range(pool);
    auto& of_pool = scratch->pools[pool];
    ForChunks(view.arena, units.unit_begin, units.unit_end, kCertifyPairs,
              [&](int begin, int end, int chunk) {
                if (stop.Cancelled()) return;
                of_pool.costs[units.begin + chunk].value =
                    ImpulseErrors(view, pool, data, begin, end, &of_pool.impulse_errors);
              });
    terms += units.end - units.begin;
    for (const CostSum& part :
         kCertifyPairs.Parts(of_pool.costs, units.begin, units.unit_begin, units.unit_end)) {
      sums.cost_error += part.value;
    }
  });
  ForChunks(view.arena, range.slot_begin, range.slot_end, kCertifySlots,
            [&](int begin, int end, int chunk) {
              if (stop.Cancelled()) return;
              CertificateSums<double> part;
              for (int slot = begin; slot < end; ++slot) {
                ForSize(graph.dofs()[slot],
                        [&](auto n) { AddSlot(view, data, *scratch, slot, n, stop, &part); });
              }
              scratch->slot_norms[range.slot_begin + chunk] = part;
            });
  for (const CertificateSums<double>& part : kCertifySlots.Parts(
           scratch->slot_norms, range.slot_begin, range.slot_begin, range.slot_end)) {
    sums.gradient2 += part.gradient2;
    sums.error2 += part.error2;
    sums.cost_error += part.cost_error;
  }
  if (!view.constants().representable) sums.cost_error = kInfinity;
  const double bound = GapBound(sums, cost, terms);
  return std::isfinite(bound) ? bound : kInfinity;
}

}  // namespace sap
