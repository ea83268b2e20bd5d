// Gauss-Seidel sweeps between Newton steps: every group of trees with a kinked constraint (a
// sliding contact, a row at one of two bounds) takes in turn an exact local Newton step, all other
// trees held.
//
//   H_gg = A_g + J_g' G J_g,   dv_g = -H_gg^-1 (grad l)_g
//   v_g += alpha dv_g          with a search along dv_g
//
// The cost never rises. What keeps a Newton step short is a handful of constraints near a kink; a
// sweep settles those locally, so that the next step is long. Groups without a kinked constraint
// are where the Newton step wanted them, and stepping them too saves no iteration. The only group
// of an island is always stepped.
//
// A group is a tree, or a few small trees that bilateral rows join (sweep_order.h).
#pragma once

#include <cstdint>

#include "solver/newton/sap_data.h"
#include "solver/newton/sweep_order.h"

namespace sap {

// Which groups a sweep steps.
enum class SweptGroups : uint8_t {
  kKinked,  // those with a kinked constraint, and the only group of an island
  kAll,     // for sweeps that no Newton step precedes
};

// One sweep over the island, colors ascending, or descending if `backward`. Moves data->v and keeps
// v_c; everything else that depends on v is stale until the next evaluation, and so is *step, which
// takes the local steps. Stops between groups and within large ones on request: false if it did,
// and then how far it got depends on the moment.
bool Sweep(const IslandView& view, const SweepOrder& order, bool backward, const StopToken& stop,
           SapData* data, SapStep* step, SweptGroups groups = SweptGroups::kKinked);

}  // namespace sap
