// How the loops over one island are cut into chunks, and how long a chunk takes on one core [ns].
// A loop is shared with other threads or not by that time (task_arena.h). The order of a sum
// depends on the size of its chunks. Times are of free bodies, two to four contacts per pair.
#pragma once

#include <algorithm>

#include "solver/parallel/task_arena.h"
#include "solver/pools/constraint_pools.h"

namespace sap {

// Stands in for an arena: every loop is one chunk, which the calling thread takes.
struct OneChunk {};
template <typename Body>
inline void ForChunks(OneChunk, int begin, int end, const Chunks&, Body&& body) {
  body(begin, end, 0);
}
template <typename Part, typename Body>
inline void AddChunks(OneChunk, int begin, int end, const Chunks&, Part*, Part* sum, Body&& body) {
  *sum += body(begin, end);
}

// Loops over trees, by slot.
constexpr Chunks kEvaluateSlots{32, 2500};     // momentum, gradient and their norms
constexpr Chunks kAssembleSlots{4, 1500};      // diagonal blocks of the Hessian
constexpr Chunks kMomentumSlots{32, 600};      // A dv
constexpr Chunks kStartSearchSlots{32, 3500};  // A dv, J dv and the slope where a search starts
constexpr Chunks kProductSlots{8, 750};        // H p of conjugate gradients
constexpr Chunks kDotSlots{32, 250};           // an inner product
constexpr Chunks kSweepGroups{2, 1000};    // of one color, which has few slots in a small island
constexpr Chunks kCertifySlots{32, 8000};  // the gradient and its rounding error in the norm of A
constexpr Chunks kRestSlots{32, 2000};     // A (v - v_0) and its norms
constexpr Chunks kDifferentiateSlots{16, 10000};  // derivatives with respect to A and v*
// Loops over the units of a pool: groups of contacts between the same trees, or rows.
constexpr Chunks kGatherUnits{16, 2500};           // Jacobians and regularization
constexpr Chunks kEvaluateGroups{64, 2500};        // velocities and impulses of contacts
constexpr Chunks kEvaluateRows{256, 5000};         // those of rows
constexpr Chunks kCertifyUnits{64, 6000};          // rounding errors of impulses
constexpr Chunks kSlopeUnits{64, 10000};           // sums of the derivatives of a regularization
constexpr Chunks kDifferentiateGroups{32, 30000};  // derivatives by J and the law of contacts
constexpr Chunks kDifferentiateRows{128, 30000};   // those of rows
constexpr Chunks kHubSides{128, 15000};            // what one tree has in a pool (hub_loops.h)
// Loops over pairs of trees with constraints in common.
constexpr Chunks kAssemblePairs{16, 1500};  // off-diagonal blocks of the Hessian
// Loops over the constraints of a pool.
constexpr Chunks kConstraints{128, 700};       // the law of a pool and its derivatives
constexpr Chunks kLineConstraints{512, 2500};  // its slope along a line, which is summed

// Islands of no more than these have one chunk in every loop that sums.
constexpr int kTreesOfOneChunk =
    std::min({kEvaluateSlots.size, kMomentumSlots.size, kCertifySlots.size, kRestSlots.size});
constexpr int kRowsOfOneChunk =
    std::min({kEvaluateRows.size, kCertifyUnits.size, kLineConstraints.size, kHubSides.size});

// Chunks of the units of a pool for velocities and impulses.
template <int index>
constexpr Chunks EvaluationChunks(PoolIndex<index> pool) {
  return IsRow(pool) ? kEvaluateRows : kEvaluateGroups;
}

// Chunks of the units of a pool for derivatives.
template <int index>
constexpr Chunks DerivativeChunks(PoolIndex<index> pool) {
  return IsRow(pool) ? kDifferentiateRows : kDifferentiateGroups;
}

}  // namespace sap
