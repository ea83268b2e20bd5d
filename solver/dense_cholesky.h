// Cholesky of small dense matrices in place, row-major: dynamics matrices of trees and Hessians of
// small islands.
//
//   A = L L',   L lower triangular;   row-major, so that the inner products run along rows
//
// Deterministic and free of allocation; sizes known at compile time unroll.
#pragma once

#include <cmath>

namespace sap {

// Factors the lower triangle of the n x n matrix in place; the upper one is neither read nor
// written. False where a pivot is not a positive finite number; the matrix is then partly
// overwritten.
template <typename Size>
bool FactorDense(double* A, Size n) {
  for (int j = 0; j < n; ++j) {
    double* row_j = A + j * n;
    for (int i = j; i < n; ++i) {
      double* row_i = A + i * n;
      double sum = row_i[j];
      for (int k = 0; k < j; ++k) sum -= row_i[k] * row_j[k];
      if (i == j) {
        if (!(sum > 0.0) || !std::isfinite(sum)) return false;
        row_j[j] = std::sqrt(sum);
      } else {
        row_i[j] = sum / row_j[j];
      }
    }
  }
  return true;
}

// x := L^-1 x.
template <typename Size>
void SolveLower(const double* L, Size n, double* x) {
  for (int i = 0; i < n; ++i) {
    double sum = x[i];
    for (int k = 0; k < i; ++k) sum -= L[i * n + k] * x[k];
    x[i] = sum / L[i * n + i];
  }
}

// x := L^-T x.
template <typename Size>
void SolveLowerTransposed(const double* L, Size n, double* x) {
  for (int i = n - 1; i >= 0; --i) {
    x[i] /= L[i * n + i];
    for (int k = 0; k < i; ++k) x[k] -= L[i * n + k] * x[i];
  }
}

}  // namespace sap
