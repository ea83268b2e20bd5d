#include "solver/newton/line_search.h"

#include "solver/newton/few_rows_view.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

namespace {

// Slope and curvature of 1/2 |v - v*|_A^2: first + alpha second. Fills step->momentum.
template <typename View>
LineSlope MomentumAlongStep(const View& view, const SapData& data, SapStep* step,
                            SapScratch* scratch) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  LineSlope slope;
  AddChunks(view.arena, range.slot_begin, range.slot_end, kMomentumSlots,
            scratch->slot_slopes.data() + range.slot_begin, &slope, [&](int begin, int end) {
              LineSlope sum;
              for (int slot = begin; slot < end; ++slot) {
                const int start = graph.velocity_start()[slot];
                const double* dv = step->v.data() + start;
                const double* change = data.momentum_change.data() + start;
                double* momentum = step->momentum.data() + start;
                ForTreeSize(graph.dofs()[slot], [&](auto n) {
                  view.model.MultiplyA(graph, slot, n, dv, momentum);
                  if (view.coupled()) AddCoupledProduct(view, slot, step->v, momentum);
                  for (int i = 0; i < n; ++i) {
                    sum.first += dv[i] * change[i];
                    sum.second += dv[i] * momentum[i];
                  }
                });
              }
              return sum;
            });
  return slope;
}

// Slope and curvature of one pool at alpha.
template <typename View, typename PoolIndexType>
LineSlope PoolAlongStep(const View& view, PoolIndexType pool, const SapData& data,
                        const SapStep& step, double alpha, SearchedCost cost, SapScratch* scratch) {
  const PoolRange range = view.range(pool);
  const auto& laws = view.model.pools[pool].laws;
  const auto& v_c = data.pools[pool].v_c;
  const auto& dv_c = step.pools[pool].v_c;
  LineSlope slope;
  AddChunks(view.arena, range.begin, range.end, kLineConstraints,
            scratch->pools[pool].slopes.data() + range.begin, &slope, [&](int begin, int end) {
              if constexpr (IsCurved(pool)) {
                if (cost == SearchedCost::kLinearized) {
                  return laws.LinearizedAlongLine(begin, end, v_c, dv_c, data.pools[pool].s, alpha);
                }
              }
              return laws.AlongLine(begin, end, v_c, dv_c, alpha);
            });
  return slope;
}

// The quadratic part of the cost at 0: that of A and of the pools with a quadratic cost.
template <typename View>
LineSlope QuadraticAlongStep(const View& view, const LineSlope& momentum, const SapData& data,
                             const SapStep& step, SapScratch* scratch) {
  LineSlope slope = momentum;
  ForPoolsOf(view, [&](auto pool) {
    if (!IsQuadratic(pool)) return;
    slope += PoolAlongStep(view, pool, data, step, 0, SearchedCost::kTrue, scratch);
  });
  return slope;
}

// All other pools at alpha.
template <typename View>
LineSlope ConstraintsAlongStep(const View& view, const SapData& data, const SapStep& step,
                               double alpha, SearchedCost cost, SapScratch* scratch) {
  LineSlope slope;
  ForPoolsOf(view, [&](auto pool) {
    if (IsQuadratic(pool)) return;
    slope += PoolAlongStep(view, pool, data, step, alpha, cost, scratch);
  });
  return slope;
}

template <typename View>
StartingSlope SlopeAtZero(const View& view, const SapData& data, const SapStep& step) {
  StartingSlope slope;
  double sizes = 0;
  for (int i = view.range().velocity_begin; i < view.range().velocity_end; ++i) {
    const double impulse = data.momentum_change[i] - data.gradient[i];
    slope.f += data.gradient[i] * step.v[i];
    sizes += std::abs(step.v[i]) * (std::abs(data.momentum_change[i]) + std::abs(impulse));
  }
  slope.roundoff = RoundoffOf(sizes);
  return slope;
}

// Calls compute(part) for the three parts of the start of a search, of which none needs another.
// The first is serial: its sums have one order.
template <typename Compute>
void ForParts(TaskArena* arena, int chunks, Compute&& compute) {
  constexpr int kParts = 3;
  if (arena != nullptr && IsWorthSharing(*arena, chunks, kStartSearchSlots)) {
    arena->ParallelFor(kParts, compute);
  } else {
    for (int part = 0; part < kParts; ++part) compute(part);
  }
}
template <typename Compute>
void ForParts(OneChunk, int, Compute&& compute) {
  ForParts(static_cast<TaskArena*>(nullptr), 1, compute);
}

}  // namespace

template <typename View>
LineSearchResult SearchAlongStep(const View& view, double tolerance, const StopToken& stop,
                                 const SapData& data, SapStep* step, SapScratch* scratch,
                                 SearchedCost cost) {
  LineSlope momentum;
  StartingSlope start;
  const auto compute = [&](int part) {
    if (part == 0) start = SlopeAtZero(view, data, *step);
    if (part == 1) ConstraintVelocities(view, step->v, stop, &step->pools);
    if (part == 2) momentum = MomentumAlongStep(view, data, step, scratch);
  };
  const int chunks = kStartSearchSlots.Count(view.range().slot_begin, view.range().slot_end);
  ForParts(view.arena, chunks, compute);
  if (!(start.f < 0)) return {0.0, false};
  const LineSlope quadratic = QuadraticAlongStep(view, momentum, data, *step, scratch);

  const auto slope_at = [&](double alpha) {
    if (stop.Requested()) return LineSlope();  // as at the root: the search ends
    LineSlope slope = ConstraintsAlongStep(view, data, *step, alpha, cost, scratch);
    slope.first += quadratic.first + alpha * quadratic.second;
    slope.second += quadratic.second;
    return slope;
  };
  return {RootOfSlope(start.f, tolerance, slope_at, start.roundoff), true, start.f};
}

template LineSearchResult SearchAlongStep(const IslandView&, double, const StopToken&,
                                          const SapData&, SapStep*, SapScratch*, SearchedCost);
template LineSearchResult SearchAlongStep(const FewRowsView&, double, const StopToken&,
                                          const SapData&, SapStep*, SapScratch*, SearchedCost);

}  // namespace sap
