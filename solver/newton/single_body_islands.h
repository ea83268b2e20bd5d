// Islands of one free body and friction contacts with the world: the same method as in
// sap_solver.h, four islands at a time, one per lane of a vector.
//
// Such an island takes some hundred flops per iteration, less than one vector can hold of its own.
// Lanes never mix, and islands of one call have equally many contacts, so the bits of an answer do
// not depend on which islands share a vector.
#pragma once

#include <bitset>
#include <span>

#include "solver/model/single_bodies.h"
#include "solver/newton/sap_data.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"

namespace sap {

inline constexpr int kMaxSingleBodyIslands = SingleBodies::kLanes;

// Whether SolveSingleBodyIslands solves islands like this one.
bool IsSingleBodyIsland(const IslandRange& range, const SolverOptions& options);

// Solves 1 to kMaxSingleBodyIslands islands of as many contacts each from data->v, where the best
// iterates are left, as SolveIsland does. `bodies` has their constants, in the order of `islands`;
// of the model only the constants of islands are read. The blank reports are those of the islands,
// by their numbers. Returns which of the islands it leaves unsolved, at the guess and with a blank
// report: those whose H rounding made indefinite, and those to be handed over to the interior-point
// method. SolveIsland can solve them.
std::bitset<kMaxSingleBodyIslands> SolveSingleBodyIslands(
    const ConstraintGraph& graph, const SapModel& model, const SingleBodies& bodies,
    std::span<const int> islands, const SolverOptions& options, const StopToken& stop,
    SapData* data, std::span<IslandReport> reports);

}  // namespace sap
