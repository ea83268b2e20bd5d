// Where the entries of a front lie in memory.
//
// A front has p pivot columns and p + r rows: p pivot rows, then r update rows. Rows are stored in
// slivers of kLanes rows, each sliver column by column, so that the factor as it is stored is the
// packed operand of the kernels: a vector is kLanes rows of one column, and a sliver is read from
// its first to its last column without a stride. With four lanes:
//
//              columns 0 .. p-1
//   sliver 0   |0 1|                      entry (row, column) of a sliver is at
//   sliver 1   |0 1 2 3|                  start + column * kLanes + row % kLanes
//   ...        |0 1 2 3 4 5|              pivot slivers end at their diagonal,
//   ---------------------------           the last one padded to whole lanes
//   sliver u   |0 1 2 3 4 5 .. p-1|       update slivers start afresh, so that
//   ...        |0 1 2 3 4 5 .. p-1|       U = -L21 L21' has aligned operands
//
// The update matrix U (r x r) is stored by columns, of which only the lower triangle is used. Both
// layouts pad rows to whole slivers; padding is zero in the factor, and anything in U.
#pragma once

#include <cstddef>

namespace sap {

template <typename Scalar>
class FrontLayout {
 public:
  static constexpr int kLanes = 32 / sizeof(Scalar);

  FrontLayout(int pivots, int updates)
      : pivots_(pivots),
        updates_(updates),
        pivot_slivers_(Slivers(pivots)),
        slivers_(pivot_slivers_ + Slivers(updates)) {}

  int pivots() const { return pivots_; }
  int updates() const { return updates_; }
  int pivot_slivers() const { return pivot_slivers_; }
  int slivers() const { return slivers_; }  // pivot and update slivers

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

  // Local rows as the plan counts them: pivot rows, then update rows.
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
// do not fall on each other in the cache.
inline ptrdiff_t UpdateStride(int updates) {
  constexpr int kUnit = 8;
  return ((updates + kUnit - 1) / kUnit | 1) * kUnit;
}

// Columns are formed four at a time.
inline ptrdiff_t UpdateEntries(int updates) {
  return (updates + 3) / 4 * 4 * UpdateStride(updates);
}

}  // namespace sap
