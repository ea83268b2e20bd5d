#include "solver/cholesky/small_cholesky.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "solver/cholesky/dense_front.h"
#include "solver/cholesky/front_kernels.h"
#include "solver/cholesky/front_solve.h"

namespace sap {

namespace {

// Whether a column of a sliver is zero, whatever its signs.
bool IsZero(const double* column) {
  uint64_t bits[FrontLayout<double>::kLanes];
  std::memcpy(bits, column, sizeof(bits));
  uint64_t any = 0;
  for (const uint64_t of_row : bits) any |= of_row;
  return any << 1 == 0;
}

// x := (L L')^-1 x of a matrix in one sliver.
template <int rows>
void SolveSliver(const double* L, double* x) {
  constexpr int kStride = SmallCholesky::kStride;
#pragma GCC unroll 4
  for (int j = 0; j < rows; ++j) {
    x[j] *= L[j * kStride + j];
    for (int i = j + 1; i < rows; ++i) x[i] = MultiplySubtract(L[j * kStride + i], x[j], x[i]);
  }
#pragma GCC unroll 4
  for (int i = rows - 1; i >= 0; --i) {
    x[i] *= L[i * kStride + i];
    for (int j = 0; j < i; ++j) x[j] = MultiplySubtract(L[j * kStride + i], x[i], x[j]);
  }
}

}  // namespace

void SmallCholesky::Clear(int n) {
  rows_ = n;
  std::fill_n(entries_, Layout(n, 0).entries(), 0.0);
}

// All zero where few entries are, which the tiles of whole panels waste less time on than looking
// for those to skip.
void SmallCholesky::FindStarts() {
  const Layout layout(rows_, 0);
  ptrdiff_t skipped = 0;
  for (int s = 0; s < layout.pivot_slivers(); ++s) {
    const double* sliver = entries_ + layout.SliverStart(s);
    int column = 0;
    while (column < layout.FirstRow(s) && IsZero(sliver + column * kStride)) ++column;
    starts_[s] = column / kStride * kStride;
    skipped += kStride * starts_[s];
  }
  if (4 * skipped < layout.entries()) std::fill_n(starts_, layout.pivot_slivers(), 0);
}

bool SmallCholesky::Factor() {
  if (rows_ <= kStride) {
    return WithConstant<kStride>(
        rows_, [&](auto rows) { return FactorLower<double, rows, kStride>(entries_); });
  }
  FindStarts();
  const Layout layout(rows_, 0);
  DenseFront<double> front(layout, entries_);
  const bool full =
      std::all_of(starts_, starts_ + layout.pivot_slivers(), [](int start) { return start == 0; });
  const DenseStatus status =
      full ? front.FactorPivots(StopToken()) : front.FactorProfile(starts_, StopToken());
  return status == DenseStatus::kOk;
}

void SmallCholesky::Solve(double* x) const {
  if (rows_ <= kStride) {
    return WithConstant<kStride>(rows_, [&](auto rows) { SolveSliver<rows>(entries_, x); });
  }
  const Layout layout(rows_, 0);
  double padded[kMaxRows];
  double sums[kMaxRows * Layout::kLanes];
  const int padded_rows = layout.pivot_slivers() * Layout::kLanes;
  std::fill(std::copy_n(x, rows_, padded), padded + padded_rows, 0.0);
  ForwardSolvePivots(layout, entries_, padded, starts_);
  SumUpdates<double>(layout, entries_, nullptr, 0, padded_rows, sums);
  BackwardSolvePivots(layout, entries_, padded, sums, starts_);
  std::copy_n(padded, rows_, x);
}

}  // namespace sap
