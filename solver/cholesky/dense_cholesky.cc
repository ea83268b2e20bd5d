#include "solver/cholesky/dense_cholesky.h"

#include "solver/parallel/growing_buffer.h"

namespace sap {

namespace {

// The power of two next to the largest diagonal entry, by which the matrix is divided: square roots
// would otherwise make the bits depend on the unit of mass.
double UnitOf(const double* A, ptrdiff_t n) {
  double largest = std::numeric_limits<double>::min();
  for (ptrdiff_t i = 0; i < n; ++i) largest = std::max(largest, A[i * n + i]);
  constexpr int kMaxExponent = 1000;  // the inverse is a normal number as well
  return std::ldexp(1.0, std::clamp(std::ilogb(largest), -kMaxExponent, kMaxExponent));
}

// Factors by way of a front, whose entries need not be set.
DenseStatus FactorByFront(const FrontLayout<double>& layout, double* entries, double* A, int n,
                          const StopToken& stop) {
  std::fill_n(entries, layout.entries(), 0.0);
  const double unit = UnitOf(A, n);
  const double per_unit = 1 / unit;
  constexpr int kStride = FrontLayout<double>::kLanes;
  for (ptrdiff_t i = 0; i < n; ++i) {
    double* row = entries + layout.PivotRowStart(static_cast<int>(i));
    for (int j = 0; j <= i; ++j) row[j * kStride] = A[i * n + j] * per_unit;
  }
  const DenseStatus status = DenseFront<double>(layout, entries).FactorPivots(stop);
  if (status == DenseStatus::kOk) {
    // L sqrt(D) with the inverse of sqrt(D) on the diagonal, to L and the inverse of D.
    for (ptrdiff_t i = 0; i < n; ++i) {
      const double* row = entries + layout.PivotRowStart(static_cast<int>(i));
      for (ptrdiff_t j = 0; j < i; ++j) A[i * n + j] = row[j * kStride] * A[j * n + j];
      A[i * n + i] = row[i * kStride];
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
      const double inverse = A[i * n + i];
      A[i * n + i] = std::min(inverse * inverse * per_unit, std::numeric_limits<double>::max());
    }
  }
  return status;
}

}  // namespace

DenseStatus FactorLargeTree(double* A, int n, const StopToken& stop) {
  constexpr ptrdiff_t kStackEntries = 2176;  // a tree of 64
  const FrontLayout<double> layout(n, 0);
  if (layout.entries() <= kStackEntries) {
    alignas(64) double entries[kStackEntries];
    return FactorByFront(layout, entries, A, n, stop);
  }
  thread_local GrowingBuffer<double> kept;
  const DenseStatus status = FactorByFront(layout, kept.Reserve(layout.entries()), A, n, stop);
  kept.ReleaseAbove(kKeptScratch);
  return status;
}

void SolveUnitLower(const double* L, int n, Lanes4* x, int first) {
  constexpr int kRows = 4;
  int i = first;
  for (; i + kRows <= n; i += kRows) {
    const double* row[kRows];
    Lanes4 sum[kRows];
    for (int r = 0; r < kRows; ++r) {
      row[r] = L + static_cast<ptrdiff_t>(i + r) * n;
      sum[r] = x[i + r];
    }
    for (int k = first; k < i; ++k) {
      const Lanes4 x_k = x[k];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum[r] = MultiplySubtract(x_k, row[r][k], sum[r]);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int q = 0; q < r; ++q) sum[r] = MultiplySubtract(sum[q], row[r][i + q], sum[r]);
      x[i + r] = sum[r];
    }
  }
  for (; i < n; ++i) {
    const double* row = L + static_cast<ptrdiff_t>(i) * n;
    for (int k = first; k < i; ++k) x[i] = MultiplySubtract(x[k], row[k], x[i]);
  }
}

void SolveLargeTree(const double* L, int n, double* x) {
  SolveUnitLower(L, n, x);
  for (ptrdiff_t i = 0; i < n; ++i) x[i] *= L[i * n + i];
  for (ptrdiff_t k = n - 1; k > 0; --k) {
    for (ptrdiff_t i = 0; i < k; ++i) x[i] = MultiplySubtract(L[k * n + i], x[k], x[i]);
  }
}

}  // namespace sap
