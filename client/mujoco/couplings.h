// Pairs of trees between which A has blocks, in the metric of the integrator `discrete`: where a
// flex is stiff, and each of its vertices is a tree. Then terms over several trees, which otherwise
// are rows, are blocks, too, as v* is that of the whole A.
#pragma once

#include <cstdint>
#include <vector>

#include "client/mujoco/implicit_forces.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

// A part s j j' of A.
struct MetricTerm {
  MomentArms arms;  // j
  double scale;     // s
};

// Those of the stiff tendons, of the outputs of stiff actuators, and of the contacts of flexes that
// are passive forces.
std::vector<MetricTerm> MetricTermsOf(const Fields& fields);

class Couplings {
 public:
  Couplings(const Fields& fields, const Trees& trees);

  bool empty() const { return lower_.empty(); }
  int64_t count() const { return static_cast<int64_t>(lower_.size()); }
  int64_t values() const { return block_start_.back(); }  // of all blocks

  // Writes the trees a > b of each pair, [2, count], ascending.
  void WriteTrees(int32_t* trees) const;

  // Where the block of trees a > b, which are a pair, begins.
  int64_t BlockStart(int64_t a, int64_t b) const;

 private:
  std::vector<int64_t> first_;        // [ntree + 1] first pair of each a
  std::vector<int32_t> lower_;        // b of each pair
  std::vector<int64_t> block_start_;  // [count + 1]
};

}  // namespace sap::mujoco
