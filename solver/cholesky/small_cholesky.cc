#include "solver/cholesky/small_cholesky.h"

#include <algorithm>

#include "solver/cholesky/dense_front.h"
#include "solver/cholesky/front_solve.h"

namespace sap {

void SmallCholesky::Clear(int n) {
  rows_ = n;
  std::fill_n(entries_, Layout(n, 0).entries(), 0.0);
}

bool SmallCholesky::Factor() {
  return DenseFront<double>(Layout(rows_, 0), entries_).FactorPivots(StopToken()) ==
         DenseStatus::kOk;
}

void SmallCholesky::Solve(double* x) const {
  const Layout layout(rows_, 0);
  double padded[kMaxRows];
  double sums[kMaxRows * Layout::kLanes];
  const int padded_rows = layout.pivot_slivers() * Layout::kLanes;
  std::fill(std::copy_n(x, rows_, padded), padded + padded_rows, 0.0);
  ForwardSolvePivots(layout, entries_, padded);
  SumUpdates<double>(layout, entries_, nullptr, 0, padded_rows, sums);
  BackwardSolvePivots(layout, entries_, padded, sums);
  std::copy_n(padded, rows_, x);
}

}  // namespace sap
