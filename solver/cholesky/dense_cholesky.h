// L D L' of one dense matrix in place, row-major: dynamics matrices of trees and Hessians of small
// islands.
//
//   A = L D L',   L unit lower triangular, D > 0 diagonal
//
// A matrix times a power of two has the same L, and D times that power, bit for bit. L is stored
// below the diagonal and the inverse of D on it, so that a solve takes no divisions.
//
// FactorDense and SolveDense are inner products along rows; sizes known at compile time unroll. In
// large matrices inner products wait for their own sums, and those of robots are mostly zeros, so
// for trees, which can have any size, the functions named after trees change to those of
// large_tree.h above kScalarDofs.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "solver/cholesky/dense_sizes.h"
#include "solver/cholesky/large_tree.h"
#include "solver/parallel/simd.h"
#include "solver/parallel/stop_token.h"

namespace sap {

// Factors the lower triangle of the n x n matrix in place. The upper triangle is neither read nor
// written. False where a pivot is not a positive finite number; the matrix is then partly
// overwritten. Scalar is double, or Lanes4 for four matrices, with an answer for each.
template <typename Scalar, typename Size>
auto FactorDense(Scalar* A, Size n) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  auto positive = Scalar{} == Scalar{};
  for (int i = 0; i < n; ++i) {
    Scalar* row_i = A + i * n;
    Scalar pivot = row_i[i];
    for (int j = 0; j < i; ++j) {
      const Scalar* row_j = A + j * n;
      Scalar u = row_i[j];
      for (int k = 0; k < j; ++k) u = MultiplySubtract(row_i[k], row_j[k], u);
      row_i[j] = u;  // L_ij d_j until the row is done
    }
    for (int j = 0; j < i; ++j) {
      const Scalar u = row_i[j];
      row_i[j] = u * A[j * n + j];
      pivot = MultiplySubtract(u, row_i[j], pivot);
    }
    positive &= (pivot > 0.0) & (pivot <= kLargest);
    if constexpr (std::is_same_v<Scalar, double>) {
      if (!positive) return false;
    }
    // Finite even where 1 / pivot is not, so that entries that are zero stay zero.
    const Scalar inverse = 1.0 / pivot;
    row_i[i] = inverse < kLargest ? inverse : Scalar{} + kLargest;
  }
  return positive;
}

// x := L^-1 x in rows [first, n): those before are zero. X is Scalar for one right-hand side, or
// Lanes4 for four of one matrix.
template <typename Scalar, typename X, typename Size>
void SolveUnitLower(const Scalar* L, Size n, X* x, int first = 0) {
  for (int i = first + 1; i < n; ++i) {
    X sum = x[i];
    for (int k = first; k < i; ++k) sum = MultiplySubtract(x[k], L[i * n + k], sum);
    x[i] = sum;
  }
}

// Four right-hand sides, any n: four rows at a time, which do not wait for each other; same bits.
void SolveUnitLower(const double* L, int n, Lanes4* x, int first = 0);

// x := A^-1 x.
template <typename Scalar, typename Size>
void SolveDense(const Scalar* L, Size n, Scalar* x) {
  SolveUnitLower(L, n, x);
  for (int i = n - 1; i >= 0; --i) {
    x[i] *= L[i * n + i];
    for (int k = i + 1; k < n; ++k) x[i] = MultiplySubtract(x[k], L[k * n + i], x[i]);
  }
}

// The factor of a tree of any size: L and the inverse of D; above kScalarDofs U and the inverse of
// D, with the ends of the rows of U, which other trees have none of.
struct TreeFactor {
  const double* entries;
  const int* ends;
};

// Factors the lower triangle in place, or the upper one above kScalarDofs.
template <typename Size>
DenseStatus FactorTree(double* A, Size n, int* ends, const StopToken& stop = StopToken()) {
  if (n > kScalarDofs) return FactorLargeTree(A, n, ends, stop);
  return FactorDense(A, n) ? DenseStatus::kOk : DenseStatus::kNotPositiveDefinite;
}

// x := L^-1 x or U^-1 x, so that the sum of x_i^2 / D_i is x' A^-1 x.
template <typename Size>
void HalfSolveTree(const TreeFactor& factor, Size n, double* x) {
  if (n > kScalarDofs) {
    HalfSolveLargeTree(factor.entries, n, factor.ends, x);
  } else {
    SolveUnitLower(factor.entries, n, x);
  }
}

// x := A^-1 x.
template <typename Size>
void SolveTree(const TreeFactor& factor, Size n, double* x) {
  if (n > kScalarDofs) {
    SolveLargeTree(factor.entries, n, factor.ends, x);
  } else {
    SolveDense(factor.entries, n, x);
  }
}

// x := A^-1 x by a factor that is not kept; A, of which both triangles are given, is overwritten.
template <typename Size>
DenseStatus SolveOnceWithTree(double* A, Size n, double* x, const StopToken& stop = StopToken()) {
  if (n > kScalarDofs) return SolveOnceWithLargeTree(A, n, x, stop);
  if (!FactorDense(A, n)) return DenseStatus::kNotPositiveDefinite;
  SolveDense(A, n, x);
  return DenseStatus::kOk;
}

}  // namespace sap
