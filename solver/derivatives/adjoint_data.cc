#include "solver/derivatives/adjoint_data.h"

#include "solver/pools/jacobian_kernels.h"

namespace sap {

void AdjointData::Resize(const ConstraintGraph& graph, bool with_directions) {
  const size_t velocities = graph.velocity_start().back();
  for (std::vector<double>* array : {&right_side, &lambda, &v_before}) array->resize(velocities);
  slot_sums.resize(graph.num_slots());
  A_inverse.Reserve(graph.matrix_start().back());
  ForEachPool([&](auto pool) {
    const auto& layout = LayoutOf(graph, pool);
    const size_t constraints = layout.order().size();
    auto& adjoint = pools[pool];
    adjoint.v_c.resize(constraints);
    adjoint.gamma.resize(constraints);
    adjoint.w.resize(constraints);
    adjoint.w_by_W.resize(constraints);
    if constexpr (HasRotation(pool)) adjoint.w_by_friction.resize(constraints);
    adjoint.W_bar.resize(constraints);
    adjoint.sums.resize(constraints);
    if (!with_directions) return;
    adjoint.dJ_v.resize(constraints);
    adjoint.dJ.Resize(layout);
  });
}

void MultiplyJacobians(const IslandView& view, const std::vector<double>& u, const StopToken& stop,
                       AdjointData* adjoint) {
  ForPoolsOf(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    ForChunks(view.arena, range.unit_begin, range.unit_end, EvaluationChunks(pool),
              [&](int begin, int end, int) {
                if (stop.Requested()) return;
                view.model.pools[pool].jacobians.Velocities(view.graph, view.layout(pool), begin,
                                                            end, u, &adjoint->pools[pool].v_c);
              });
  });
}

void AddImpulses(const IslandView& view, const AdjointData& adjoint, const StopToken& stop,
                 std::vector<double>* x) {
  const ConstraintGraph& graph = view.graph;
  ForChunks(view.arena, view.range().slot_begin, view.range().slot_end, kEvaluateSlots,
            [&](int begin, int end, int) {
              if (stop.Requested()) return;
              for (int slot = begin; slot < end; ++slot) {
                ForSize(graph.dofs()[slot], [&](auto n) {
                  ForPoolsOf(view, [&](auto pool) {
                    const auto& jacobians = view.model.pools[pool].jacobians;
                    const auto& layout = view.layout(pool);
                    jacobians.AddImpulse(layout, jacobians.SidesOf(layout, slot), n,
                                         adjoint.pools[pool].v_c,
                                         x->data() + graph.velocity_start()[slot]);
                  });
                });
              }
            });
}

}  // namespace sap
