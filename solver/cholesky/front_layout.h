// Where the entries of a front lie in memory.
//
// The factored part of a front has p pivot columns and p + r rows: p pivot rows, then r update
// rows. Rows are stored in slivers of kLanes rows, each sliver column by column. A vector is kLanes
// rows of one column, and the columns of a sliver are contiguous, so the stored factor needs no
// packing before it enters the kernels. With four lanes:
//
//              columns 0 .. p-1
//   sliver 0   |0 1 2 3|                    entry (row, column) of a sliver is at
//   sliver 1   |0 1 2 3 4 5 6 7|            start + column * kLanes + row % kLanes
//   ...        |0 1 2 3 4 5 6 7 8 ..|       pivot slivers end at the tile of their diagonal
//   ------------------------------------
//   sliver u   |0 1 2 3 4 5 6 7 8 .. p-1|   update rows begin a new sliver, so that the
//   ...        |0 1 2 3 4 5 6 7 8 .. p-1|   operands of L21 L21' begin at whole slivers
//
// The update matrix U (r x r) is stored by columns; only its lower triangle is used. Both layouts
// pad rows to whole slivers; the padding is zero in the factor and undefined in U.
#pragma once

#include <cstddef>

#include "solver/parallel/simd.h"

namespace sap {

template <typename Scalar>
class FrontLayout {
 public:
  static constexpr int kLanes = kNumLanes<Scalar>;

  FrontLayout(int pivots, int updates)
      : pivots_(pivots),
        updates_(updates),
        pivot_slivers_(Slivers(pivots)),
        slivers_(pivot_slivers_ + Slivers(updates)) {}

  int pivots() const { return pivots_; }
  int updates() const { return updates_; }
  int pivot_slivers() const { return pivot_slivers_; }
  int slivers() const { return slivers_; }  // pivot and update slivers

  // The first local row of sliver s; the number of rows for slivers().
  int FirstRow(int s) const {
    if (s <= pivot_slivers_) return s * kLanes < pivots_ ? s * kLanes : pivots_;
    const int row = (s - pivot_slivers_) * kLanes;
    return pivots_ + (row < updates_ ? row : updates_);
  }

  // Entry (0, 0) of sliver s.
  ptrdiff_t SliverStart(int s) const {
    if (s < pivot_slivers_) return Triangle(s);
    return Triangle(pivot_slivers_) + static_cast<ptrdiff_t>(s - pivot_slivers_) * pivots_ * kLanes;
  }

  // Entry (row, 0) of pivot row `row`; column j is j * kLanes further.
  ptrdiff_t PivotRowStart(int row) const { return Triangle(row / kLanes) + row % kLanes; }

  // Entry (row, 0) of update row `row`, counted from the first update row.
  ptrdiff_t UpdateRowStart(int row) const {
    return SliverStart(pivot_slivers_ + row / kLanes) + row % kLanes;
  }

  // Entry (row, 0) of local row `row` of the plan: pivot rows, then update rows.
  ptrdiff_t RowStart(int row) const {
    return row < pivots_ ? PivotRowStart(row) : UpdateRowStart(row - pivots_);
  }

  ptrdiff_t entries() const { return SliverStart(slivers_); }

 private:
  static int Slivers(int rows) { return (rows + kLanes - 1) / kLanes; }
  static ptrdiff_t Triangle(int s) {
    return static_cast<ptrdiff_t>(kLanes) * kLanes * s * (s + 1) / 2;
  }

  int pivots_;
  int updates_;
  int pivot_slivers_;
  int slivers_;
};

// Entry (i, j) of an update matrix is at j * UpdateStride(r) + i.
//
// The stride is an odd number of cache lines (of half lines in single precision), so that columns
// do not map to the same sets of the cache.
inline ptrdiff_t UpdateStride(int updates) {
  constexpr int kUnit = 8;
  return ((updates + kUnit - 1) / kUnit | 1) * kUnit;
}

// Entries of an update matrix, whose columns are formed four at a time.
inline ptrdiff_t UpdateEntries(int updates) {
  return (updates + 3) / 4 * 4 * UpdateStride(updates);
}

}  // namespace sap
