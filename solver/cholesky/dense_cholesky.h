// L D L' of small dense matrices in place, row-major: dynamics matrices of trees and Hessians of
// small islands.
//
//   A = L D L',   L unit lower triangular, D > 0 diagonal
//
// Without square roots, so that a matrix times a power of two has the same L and D times that
// power, bit for bit. Stored are L below the diagonal and the inverse of D on it: n divisions are
// all there is, and solving has none. Row-major, so that the inner products run along rows. Sizes
// known at compile time unroll.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace sap {

// Factors the lower triangle of the n x n matrix in place. The upper triangle is neither read nor
// written. False where a pivot is not a positive finite number; the matrix is then partly
// overwritten.
template <typename Size>
bool FactorDense(double* A, Size n) {
  for (int i = 0; i < n; ++i) {
    double* row_i = A + i * n;
    double pivot = row_i[i];
    for (int j = 0; j < i; ++j) {
      const double* row_j = A + j * n;
      double u = row_i[j];
      for (int k = 0; k < j; ++k) u -= row_i[k] * row_j[k];
      row_i[j] = u;  // L_ij d_j until the row is done
    }
    for (int j = 0; j < i; ++j) {
      const double u = row_i[j];
      row_i[j] = u * A[j * n + j];
      pivot -= u * row_i[j];
    }
    if (!(pivot > 0.0) || !std::isfinite(pivot)) return false;
    // Finite even where 1 / pivot is not, so that entries that are zero stay zero.
    row_i[i] = std::min(1.0 / pivot, std::numeric_limits<double>::max());
  }
  return true;
}

// x := L^-1 x.
template <typename Size>
void SolveUnitLower(const double* L, Size n, double* x) {
  for (int i = 1; i < n; ++i) {
    double sum = x[i];
    for (int k = 0; k < i; ++k) sum -= L[i * n + k] * x[k];
    x[i] = sum;
  }
}

// x := A^-1 x.
template <typename Size>
void SolveDense(const double* L, Size n, double* x) {
  SolveUnitLower(L, n, x);
  for (int i = n - 1; i >= 0; --i) {
    x[i] *= L[i * n + i];
    for (int k = i + 1; k < n; ++k) x[i] -= L[k * n + i] * x[k];
  }
}

}  // namespace sap
