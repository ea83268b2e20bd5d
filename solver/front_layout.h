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
// The update matrix U (r x r, lower triangle) is stored by columns in groups of kGroup; the columns
// of a group start at its first row. Both layouts pad rows to whole slivers; padding is zero.
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

// The same for all scalars, a group being a whole number of slivers of each.
class UpdateLayout {
 public:
  static constexpr int kGroup = 8;

  explicit UpdateLayout(int updates) : padded_rows_((updates + kGroup - 1) / kGroup * kGroup) {}

  // Entry (i, j) is at ColumnStart(j) + i, for i from the first row of the group of j.
  ptrdiff_t ColumnStart(int j) const {
    const ptrdiff_t group = j / kGroup;
    return GroupStart(group) + (j - group * kGroup) * ColumnStride(j) - group * kGroup;
  }

  // From a column to the next of the same group.
  ptrdiff_t ColumnStride(int j) const { return padded_rows_ - j / kGroup * kGroup; }

  ptrdiff_t entries() const { return GroupStart(padded_rows_ / kGroup); }

 private:
  ptrdiff_t GroupStart(ptrdiff_t group) const {
    return kGroup * group * padded_rows_ - kGroup * kGroup / 2 * group * (group - 1);
  }

  ptrdiff_t padded_rows_;
};

}  // namespace sap
