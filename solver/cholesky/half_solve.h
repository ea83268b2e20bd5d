// Forward substitution, and back, with the factor of a BlockCholesky for right-hand sides that are
// zero except in a few blocks:
//
//   Y = L^-1 B,   so that B' H^-1 B = Y' Y,   H^-1 B = L^-T Y
//
// Forward, only the fronts from these blocks to the root are visited, each once for all of them and
// from its first row on that can differ from zero. Right-hand sides and solutions are in the order
// of elimination, one lane each. Each has the bits that it has alone: the others put zeros into its
// sums.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/cholesky/block_cholesky.h"
#include "solver/parallel/simd.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/storage_bytes.h"

namespace sap {

// Where each block of a plan is eliminated.
struct BlockPlaces {
  std::vector<int> front;  // [N]
  std::vector<int> row;    // [N] its first row in the order of elimination

  size_t storage_bytes() const { return StorageBytes(front, row); }

  void Find(const EliminationPlan& plan);
};

// The factorization that is solved with: neither is changed, so any number of threads may.
struct HalfSolveFactor {
  const EliminationPlan& plan;
  const BlockPlaces& places;
  const BlockCholesky<double>& cholesky;
};

// The right-hand sides and scratch of one thread: a row has `groups` vectors of four. Storage only
// grows.
template <int groups>
class HalfSolves {
 public:
  // Starts with right-hand sides of zeros.
  void Start(const EliminationPlan& plan);

  // The rows of one block of the right-hand sides, [rows, groups], to be added to.
  Lanes4* rows(const HalfSolveFactor& factor, int block);

  // Solves. Y means nothing after a cancellation.
  void Run(const HalfSolveFactor& factor, const StopToken& stop);

  // After Run: X = L^-T Y in place of Y, of the fronts that Run visited or of all. H^-1 B is X
  // times factor.cholesky.scale(). X means nothing after a cancellation.
  enum class Fronts : uint8_t { kVisited, kAll };
  void RunBack(const HalfSolveFactor& factor, Fronts fronts, const StopToken& stop);

  // The rows of one block of Y or X.
  const Lanes4* solution(const HalfSolveFactor& factor, int block) const {
    return y_.data() + factor.places.row[block] * groups;
  }

  // Calls body(y) for the rows of Y that can differ from zero, in a fixed order, with four columns
  // from this one on; those that Y does not have mean nothing. Products of two of them are to be
  // multiplied by factor.cholesky.scale().
  template <typename Body>
  void ForRows(const EliminationPlan& plan, int column, Body&& body) const {
    constexpr int kColumns = groups * kNumLanes<double>;
    const auto* y = reinterpret_cast<const double*>(y_.data()) + column;
    for (const int f : path_) {
      const EliminationPlan::Front& front = plan.fronts()[f];
      for (int i = first_row_[f]; i < front.pivots; ++i) {
        body(Load<Lanes4>(y + static_cast<ptrdiff_t>(front.pivot_begin + i) * kColumns));
      }
    }
  }
  template <typename Body>
  void ForRows(const EliminationPlan& plan, Body&& body) const {
    static_assert(groups == 1);
    ForRows(plan, 0, body);
  }

 private:
  static constexpr int kNotVisited = -1;

  bool Visits(int f) const { return first_row_[f] != kNotVisited; }
  void SolveFront(const HalfSolveFactor& factor, int f);
  void SolveFrontBack(const HalfSolveFactor& factor, int f, Fronts fronts);

  std::vector<Lanes4> y_;        // [rows of the plan, groups]
  std::vector<Lanes4> updates_;  // what each front subtracts from later rows; back: X of these
  std::vector<int> first_row_;   // [fronts] pivot before which Y is zero, or kNotVisited
  std::vector<int> path_;        // fronts that are visited
};

using HalfSolve = HalfSolves<1>;

extern template class HalfSolves<1>;
extern template class HalfSolves<3>;

}  // namespace sap
