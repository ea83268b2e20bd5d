#include "solver/newton/sap_data.h"

#include <cmath>

#include "solver/newton/few_rows_view.h"
#include "solver/newton/hub_loops.h"

namespace sap {

namespace {

template <int index>
int NumConstraints(const ConstraintGraph& graph, PoolIndex<index> pool) {
  return static_cast<int>(LayoutOf(graph, pool).order().size());
}

}  // namespace

void SapData::Resize(const ConstraintGraph& graph) {
  const size_t velocities = graph.velocity_start().back();
  for (std::vector<double>* array : {&v, &momentum, &momentum_change, &gradient}) {
    array->resize(velocities);
  }
  component_norms.resize(graph.num_slots());
  ForEachPool([&](auto pool) {
    const int constraints = NumConstraints(graph, pool);
    pools[pool].v_c.resize(constraints);
    pools[pool].gamma.resize(constraints);
    pools[pool].G.resize(constraints);
    pools[pool].s.resize(constraints);
  });
}

void SapStep::Resize(const ConstraintGraph& graph) {
  v.resize(graph.velocity_start().back());
  momentum.resize(graph.velocity_start().back());
  ForEachPool([&](auto pool) { pools[pool].v_c.resize(NumConstraints(graph, pool)); });
}

void SapScratch::Resize(const ConstraintGraph& graph) {
  difference.resize(graph.velocity_start().back());
  errors.resize(graph.velocity_start().back());
  inverse_diagonal.resize(graph.velocity_start().back());
  slot_sums.resize(graph.num_slots());
  slot_norms.resize(graph.num_slots());
  slot_rest.resize(graph.num_slots());
  slot_slopes.resize(graph.num_slots());
  ForEachPool([&](auto pool) {
    const int constraints = NumConstraints(graph, pool);
    pools[pool].costs.resize(constraints);
    pools[pool].cost_errors.resize(constraints);
    pools[pool].slopes.resize(constraints);
    pools[pool].impulse_errors.resize(constraints);
  });
}

namespace {

// v - from of one tree.
struct VelocityChange {
  const double* v;
  const double* from;

  double operator[](int i) const { return v[i] - from[i]; }
};

template <typename VelocitiesOf>
void AddCoupled(const IslandView& view, int slot, VelocitiesOf&& x_of, double* y) {
  AddOffDiagonalProduct(
      view.graph, slot, view.graph.dofs()[slot],
      [&](const TreePair&, int pair) { return view.model.A_block(view.graph, pair); }, x_of, y);
}

}  // namespace

void AddCoupledProduct(const IslandView& view, int slot, const std::vector<double>& x, double* y) {
  AddCoupled(
      view, slot, [&](int other) { return x.data() + view.graph.velocity_start()[other]; }, y);
}

void AddCoupledChange(const IslandView& view, int slot, const std::vector<double>& v,
                      std::span<const double> from, double* y) {
  AddCoupled(
      view, slot,
      [&](int other) {
        const int start = view.graph.velocity_start()[other];
        return VelocityChange{v.data() + start, from.data() + start};
      },
      y);
}

namespace {

// Computes momentum and gradient of one slot from impulses; adds to the sums.
template <typename View, typename Size>
void EvaluateSlot(const View& view, int slot, Size n, SapData* data, SapScratch* scratch,
                  PartialSums* sums) {
  const ConstraintGraph& graph = view.graph;
  const int start = graph.velocity_start()[slot];
  const double* v = data->v.data() + start;
  const double* v_star = view.model.v_star().data() + start;
  const double* D = view.model.D().data() + start;
  double* gradient = data->gradient.data() + start;
  double* change = data->momentum_change.data() + start;
  double* difference = scratch->difference.data() + start;
  double* momentum = data->momentum.data() + start;
  for (int i = 0; i < n; ++i) gradient[i] = 0;
  ForPoolsOf(view, [&](auto pool) {
    AddTreeImpulse(view.arena, view.model.pools[pool].jacobians, view.layout(pool), slot, n,
                   data->pools[pool].gamma, gradient);
  });
  for (int i = 0; i < n; ++i) difference[i] = v[i] - v_star[i];
  view.model.MultiplyA(graph, slot, n, v, momentum);
  view.model.MultiplyA(graph, slot, n, difference, change);
  if (view.coupled()) {
    data->component_norms[slot] = {};
    AddCoupledProduct(view, slot, data->v, momentum);
    AddCoupledChange(view, slot, data->v, view.model.v_star(), change);
  }
  for (int i = 0; i < n; ++i) {
    const double impulse = gradient[i];
    gradient[i] = change[i] - impulse;
    sums->gradient2 += D[i] * gradient[i] * (D[i] * gradient[i]);
    sums->momentum2 += D[i] * momentum[i] * (D[i] * momentum[i]);
    sums->impulse2 += D[i] * impulse * (D[i] * impulse);
    sums->cost += 0.5 * difference[i] * change[i];
  }
}

// Velocities and impulses of one pool. Returns the cost.
template <typename View, typename PoolIndexType>
CostSum EvaluatePool(const View& view, PoolIndexType pool, SapData* data, SapScratch* scratch,
                     const StopToken& stop) {
  const auto& [laws, jacobians] = view.model.pools[pool];
  const auto& layout = view.layout(pool);
  const PoolRange range = view.range(pool);
  auto& state = data->pools[pool];
  CostSum sum;
  AddChunks(view.arena, range.unit_begin, range.unit_end, EvaluationChunks(pool),
            scratch->pools[pool].costs.data() + range.begin, &sum,
            [&, &laws = laws, &jacobians = jacobians](int begin, int end) {
              if (stop.Cancelled()) return CostSum();
              jacobians.Velocities(view.graph, layout, begin, end, data->v, &state.v_c);
              return laws.Impulses(jacobians.FirstConstraint(layout, begin),
                                   jacobians.EndConstraint(layout, end), state.v_c, &state.gamma);
            });
  return sum;
}

}  // namespace

template <typename View>
IslandNorms Evaluate(const View& view, SapData* data, SapScratch* scratch, const StopToken& stop) {
  const ConstraintGraph& graph = view.graph;
  const IslandRange& range = view.range();
  CostSum constraints;
  ForPoolsOf(view,
             [&](auto pool) { constraints += EvaluatePool(view, pool, data, scratch, stop); });
  PartialSums sums{.cost = constraints.value, .cost_size = constraints.magnitude};
  AddChunks(view.arena, range.slot_begin, range.slot_end, kEvaluateSlots,
            scratch->slot_sums.data() + range.slot_begin, &sums, [&](int begin, int end) {
              PartialSums part;
              if (stop.Cancelled()) return part;
              for (int slot = begin; slot < end; ++slot) {
                ForTreeSize(graph.dofs()[slot],
                            [&](auto n) { EvaluateSlot(view, slot, n, data, scratch, &part); });
              }
              part.cost_size = part.cost;
              return part;
            });
  IslandNorms norms;
  norms.cost_size = sums.cost_size;
  norms.gradient = std::sqrt(sums.gradient2);
  norms.momentum = std::sqrt(sums.momentum2);
  norms.impulse = std::sqrt(sums.impulse2);
  norms.cost = sums.cost;
  norms.finite = std::isfinite(norms.gradient) && std::isfinite(norms.momentum) &&
                 std::isfinite(norms.impulse) && std::isfinite(norms.cost);
  return norms;
}

template IslandNorms Evaluate(const IslandView&, SapData*, SapScratch*, const StopToken&);
template IslandNorms Evaluate(const FewRowsView&, SapData*, SapScratch*, const StopToken&);

}  // namespace sap
