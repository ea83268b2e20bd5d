// Matrices of trees of more than kScalarDofs degrees of freedom, row-major: products, factor,
// solutions.
//
//   A = U D U',   U unit upper triangular, D > 0 diagonal
//
// This eliminates the last degree of freedom first. Where those of a robot are numbered from its
// root to its leaves, an entry of A is zero unless one of its two hangs on the other, and those
// that hang on one follow it. So row i of A ends before the first that does not hang on i, and
// elimination from the leaves keeps every row of U within that of A [Featherstone 2005, "Efficient
// Factorization of the Joint-Space Inertia Matrix for Branched Kinematic Trees"]. The other order
// fills all of it. Any symmetric matrix has such rows; they are as long as its zeros allow.
//
// U is stored above the diagonal and the inverse of D on it; what is below is left alone. Rows end
// within the rows that they reach: ends[j] <= ends[i] for i < j < ends[i].
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "solver/cholesky/dense_front.h"
#include "solver/cholesky/dense_sizes.h"
#include "solver/parallel/simd.h"
#include "solver/parallel/stop_token.h"

namespace sap {

// One past the last entry of row i of n columns, from the diagonal on, that is not zero. Four at a
// time without their signs: there are more zeros than entries.
inline int EndOfRow(const double* row, int i, int n) {
  for (; n - 4 > i; n -= 4) {
    uint64_t bits[4];
    std::memcpy(bits, row + n - 4, sizeof(bits));
    if (((bits[0] | bits[1] | bits[2] | bits[3]) << 1) != 0) break;
  }
  while (n > i + 1 && row[n - 1] == 0) --n;
  return n;
}

// Factors the upper triangle in place; the entries beyond the ends of its rows are zero and stay
// so. A matrix times a power of two has the same U, and D times that power, bit for bit. Polls once
// per panel of 64 columns; stopped, it leaves the matrix as it was. Above 64 dofs it allocates for
// a size that the thread has not seen.
DenseStatus FactorLargeTree(double* A, int n, int* ends, const StopToken& stop);

// x := U^-1 x, and x := A^-1 x.
void HalfSolveLargeTree(const double* U, int n, const int* ends, double* x);
void SolveLargeTree(const double* U, int n, const int* ends, double* x);

// x := A^-1 x by a factor that is not kept. Reads the upper triangle.
DenseStatus SolveOnceWithLargeTree(const double* A, int n, double* x, const StopToken& stop);

// y := A x by the upper triangle.
void MultiplyLargeTree(const double* A, int n, const int* ends, const double* x, double* y);

// Lists the rows, the last one first, in which U^-1 B can be other than zero where B has entries in
// rows i < top for which has_entries(i). Returns how many there are; room for `top`.
template <typename HasEntries>
int ListRows(const int* ends, int top, HasEntries&& has_entries, int* rows) {
  int count = 0;
  int first = top;  // of the rows listed
  for (int i = top - 1; i >= 0; --i) {
    if (!has_entries(i) && !(count > 0 && ends[i] > first)) continue;
    rows[count++] = first = i;
  }
  return count;
}

// Room of the thread for one such list of n rows.
int* ListOfThread(int n);

// x := U^-1 x for four right-hand sides, of which only the listed rows are stored.
void HalfSolveRows(const double* U, int n, const int* rows, int count, Lanes4* x);

}  // namespace sap
