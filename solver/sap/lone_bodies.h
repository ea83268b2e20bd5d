// Islands of one free body and friction contacts with the world: the same method as in
// sap_solver.h, four islands at a time, one per lane of a vector.
//
// Such an island takes some hundred flops per iteration, less than one vector can hold of its own.
// Lanes never mix, and islands of one call have equally many contacts, so the bits of an answer do
// not depend on which islands share a vector.
#pragma once

#include <span>

#include "solver/parallel/simd.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"
#include "solver/sap/sap_data.h"

namespace sap {

inline constexpr int kMaxLoneBodies = kNumLanes<double>;

// Whether SolveLoneBodies solves islands like this one.
bool IsLoneBody(const IslandRange& range, const SolverOptions& options);

// Solves 1 to kMaxLoneBodies islands of as many contacts each from data->v, where the best iterates
// are left, as SolveIsland does. The blank reports are those of the islands, by their numbers.
void SolveLoneBodies(const ConstraintGraph& graph, const SapModel& model,
                     std::span<const int> islands, const SolverOptions& options,
                     const StopToken& stop, SapData* data, std::span<IslandReport> reports);

}  // namespace sap
