// The local Newton step of one group of trees, all other trees held (gauss_seidel.h).
#pragma once

#include "solver/newton/hub_loops.h"
#include "solver/newton/sap_data.h"

namespace sap {

// The search of a local step only has to descend: the next group undoes its precision anyway.
constexpr double kLocalTolerance = 0.1;

// ForConstraints over a group of trees instead of the island, on this thread except for hubs.
template <typename Body>
inline void ForConstraints(const IslandView& view, const TreeGroup& group, Body&& body) {
  ForPoolsOf(view, [&](auto pool) {
    using Jacobians = typename PoolAt<pool>::Jacobians;
    const auto& layout = view.layout(pool);
    for (const int slot : group.slots) {
      ForSides(view.arena, Jacobians::SidesOf(layout, slot), [&](auto sides) {
        Jacobians::ForRangesOf(layout, group, sides,
                               [&](int begin, int end) { body(pool, begin, end); });
      });
    }
  });
}

// Steps a group of n degrees of freedom. Moves data->v and keeps v_c; *of_step takes the step.
// Scratch of n (n + 3). Returns early, without a step, in a large tree when stopped.
void StepGroup(const IslandView& view, const TreeGroup& group, int n, const StopToken& stop,
               double* scratch, SapData* data, SapStep* of_step);

}  // namespace sap
