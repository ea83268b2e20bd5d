#include "solver/cholesky/dense_cholesky.h"

namespace sap {

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

}  // namespace sap
