// Pairs of trees between which A has blocks: where a kinematic tree is taken apart, and in the
// metric of the integrator `discrete` where a flex is stiff and each of its vertices is a tree.
// Under `discrete`, terms over several trees are blocks of A instead of rows, because v* is
// computed with all of A.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/mujoco/moment_arms.h"
#include "client/mujoco/trees.h"

namespace sap::mujoco {

inline bool IsDiscrete(int64_t integrator) { return integrator > mjINT_IMPLICITFAST; }
inline bool IsDiscrete(const Fields& fields) { return IsDiscrete(fields.integrator); }

// A part s j j' of A.
struct MetricTerm {
  MomentArms arms;  // j
  double scale;     // s
};

// Metric terms of stiff tendons, stiff actuators, and flex contacts that act as passive forces.
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

  // The place in A of each entry of the stiffness of flexes, row by row (MatrixBlocks).
  std::span<const int64_t> stiffness_places() const { return stiffness_places_; }

 private:
  void JoinTrees(const Fields& fields, const Trees& trees, bool is_stiff);
  void PlaceStiffness(const Fields& fields, const Trees& trees);

  std::vector<int64_t> first_;        // [ntree + 1] first pair of each a
  std::vector<int32_t> lower_;        // b of each pair
  std::vector<int64_t> block_start_;  // [count + 1]
  std::vector<int64_t> stiffness_places_;
};

// The couplings of successive states, made again where the pattern of the matrices changes: they
// depend on nothing else.
class KeptCouplings {
 public:
  void Update(const Fields& fields, const Trees& trees);
  const Couplings& operator*() const { return *kept_; }

 private:
  std::optional<Couplings> kept_;
  std::vector<int32_t> pattern_;
  std::vector<int32_t> next_;
};

// The entries of A in the arrays of its blocks. The place of an entry counts through the blocks of
// all trees, then those of all pairs; -1: it is in none.
class MatrixBlocks {
 public:
  MatrixBlocks(const Trees& trees, const Couplings& couplings, double* blocks, double* coupling)
      : trees_(trees), couplings_(couplings), blocks_(blocks), coupling_(coupling) {}

  void Clear();

  // Finds an entry; null where the tree of the column is the later one, since A_ba is not kept.
  double* Find(int64_t row, int64_t column) {
    const int64_t a = trees_.OfDof(row);
    const int64_t b = trees_.OfDof(column);
    if (a == b) return blocks_ + trees_.Place(row, column);
    return a < b ? nullptr : FindBetween(a, b, row, column);
  }

  void Add(int64_t row, int64_t column, double value) {
    if (double* entry = Find(row, column); entry != nullptr) *entry += value;
  }

  void AddStiffness(const Fields& fields);

  // Whether an entry of two trees has a place.
  bool couples() const { return !couplings_.empty(); }

 private:
  double* FindBetween(int64_t a, int64_t b, int64_t row, int64_t column);

  const Trees& trees_;
  const Couplings& couplings_;
  double* blocks_;
  double* coupling_;
  int64_t a_ = -1;  // trees of `block_`, which the next entry often has, too
  int64_t b_ = -1;
  double* block_ = nullptr;
};

}  // namespace sap::mujoco
