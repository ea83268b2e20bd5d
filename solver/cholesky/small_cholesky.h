// L L' of one dense matrix that fits the stack, by the kernels of the fronts: a front without
// update rows (dense_front.h). From twelve rows on it is faster than the inner products of
// dense_cholesky.h, which wait for their own sums. Zeros at the beginning of rows are skipped. A
// matrix of one sliver is worked on in place, to the same bits.
#pragma once

#include "solver/cholesky/dense_sizes.h"
#include "solver/cholesky/front_layout.h"

namespace sap {

class SmallCholesky {
 public:
  static constexpr int kMaxRows = kDenseTreeDofs;

  // Starts a matrix of zeros with n rows.
  void Clear(int n);
  // Entry (row, column) of the matrix, of its lower triangle.
  double& at(int row, int column) { return RowOf(row)[column * kStride]; }
  // Entry (row, 0) of the matrix; those that follow it in the row are kStride apart.
  static constexpr int kStride = FrontLayout<double>::kLanes;
  double* RowOf(int row) { return entries_ + Layout(rows_, 0).PivotRowStart(row); }
  // False where a pivot is not a positive finite number.
  bool Factor();
  // x := A^-1 x. Requires Factor.
  void Solve(double* x) const;

 private:
  using Layout = FrontLayout<double>;
  static constexpr int kMaxSlivers = kMaxRows / Layout::kLanes;
  static constexpr int kMaxEntries =
      Layout::kLanes * Layout::kLanes * kMaxSlivers * (kMaxSlivers + 1) / 2;

  void FindStarts();

  int rows_{0};
  int starts_[kMaxSlivers];  // of slivers, for DenseFront::FactorProfile
  double entries_[kMaxEntries];
};

}  // namespace sap
