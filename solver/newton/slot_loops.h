// Loops over the trees of an island, with their sizes, and the momentum residual of any impulses.
#pragma once

#include "solver/newton/hub_loops.h"
#include "solver/newton/sap_data.h"

namespace sap {

// Calls body(slot, dofs, start of its velocities), by chunks.
template <typename Body>
void ForSlots(const IslandView& view, const Chunks& cut, Body&& body) {
  ForChunks(view.arena, view.range().slot_begin, view.range().slot_end, cut,
            [&](int begin, int end, int) {
              for (int slot = begin; slot < end; ++slot) {
                ForTreeSize(view.graph.dofs()[slot],
                            [&](auto n) { body(slot, n, view.graph.velocity_start()[slot]); });
              }
            });
}

// data->gradient := A (v - v*) - J' gamma with the gamma of impulses_of(pool), at the v at which
// `data` was evaluated last. A part of it after a cancellation.
template <typename ImpulsesOf>
void SetMomentumResidual(const IslandView& view, const StopToken& stop, SapData* data,
                         ImpulsesOf&& impulses_of) {
  ForSlots(view, kEvaluateSlots, [&](int slot, auto n, int start) {
    if (stop.Cancelled()) return;
    double* const residual = data->gradient.data() + start;
    std::fill_n(residual, static_cast<int>(n), 0.0);
    ForPoolsOf(view, [&](auto pool) {
      AddTreeImpulse(view.arena, view.model.pools[pool].jacobians, view.layout(pool), slot, n,
                     impulses_of(pool), residual);
    });
    for (int i = 0; i < n; ++i) residual[i] = data->momentum_change[start + i] - residual[i];
    if (view.coupled()) data->component_norms[slot] = {};
  });
}

}  // namespace sap
