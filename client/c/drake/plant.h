// The constant part of a plant, as the loops read it.
#pragma once

#include <cstdint>
#include <utility>

#include "client/c/drake/python_calls.h"

namespace sap::drake {

inline constexpr int32_t kWorld = -1;

inline int64_t TreeSize(const sap_drake_plant& plant, int64_t tree) {  // n_t
  return plant.first[tree + 1] - plant.first[tree];
}

inline int64_t ProblemVelocities(const sap_drake_plant& plant) {  // n
  return plant.first[plant.trees];
}

// Trees of the two Jacobian blocks of a contact between bodies [2] of which at least one can move.
// The second is another tree than the first, or the world.
inline std::pair<int32_t, int32_t> BlockTrees(const sap_drake_plant& plant, const int32_t* bodies) {
  const int32_t a = plant.tree_of_body[bodies[0]];
  const int32_t b = plant.tree_of_body[bodies[1]];
  if (a == kWorld) return {b, kWorld};
  return {a, a == b ? kWorld : b};
}

}  // namespace sap::drake
