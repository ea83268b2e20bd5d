// The parts of the certificate (accuracy_certificate.h) that one tree has: |grad l| in the norm of
// A^-1, and what rounding may have added to it.
//
// Scalar is double, or Lanes4 for four trees of the same size, an entry of each per vector.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/newton/sap_data.h"

namespace sap {

inline constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();
// Rounding steps from a product J v to the terms of gamma, beyond those of the product: 3 of the
// target, 1 of the difference, 2 of the product with 1/R_t, 3 of the norm of the tangents, whose
// target has one step, 4 of the product with mu_hat.
inline constexpr int kVelocitySteps = 12;

// A tree of n degrees of freedom: A, and its factor by FactorTree.
template <typename Scalar, typename Size>
struct FactoredTree {
  const Scalar* A;
  const Scalar* L;  // or U
  Size n;
  const int* ends{nullptr};  // of the rows of U
};

// error := bounds on the rounding errors of A (v - v*). Returns that of 1/2 |v - v*|_A^2.
template <typename Scalar, typename Size>
inline Scalar MomentumErrors(const FactoredTree<Scalar, Size>& tree, const Scalar* v,
                             const Scalar* v_star, Scalar* error) {
  const Size n = tree.n;
  for (int i = 0; i < n; ++i) error[i] = Scalar{};
  for (int k = 0; k < n; ++k) {
    const Scalar size = (n + 4) * kUnitRoundoff * (Abs(v[k]) + Abs(v_star[k]));
    for (int i = 0; i < n; ++i) error[i] += Abs(tree.A[k * n + i]) * size;
  }
  Scalar cost_error{};
  for (int i = 0; i < n; ++i) cost_error += Abs(v[i] - v_star[i]) * error[i];
  return cost_error;
}

// Sums the lanes of one tree (double), or keeps one sum per tree (Lanes4).
template <typename Scalar>
inline Scalar SumOverColumns(const Lanes4& columns) {
  if constexpr (std::is_same_v<Scalar, double>) {
    return Sum(columns);
  } else {
    return columns;
  }
}

// Entries k, k + 1, ... of n, one per lane.
inline void StoreDiagonal(const Lanes4& entries, int k, int n, double* diagonal) {
  for (int lane = 0; lane < kNumLanes<double> && k + lane < n; ++lane) {
    diagonal[k + lane] = entries[lane];
  }
}

// MultiplyAbsoluteInverse by U of a large tree. Only those rows are worked on in which four columns
// of U^-1 can be other than zero: their own, and those that these hang on.
[[gnu::noinline]] inline double MultiplyAbsoluteInverseOfU(const FactoredTree<double, int>& tree,
                                                           const double* e, const StopToken& stop,
                                                           Lanes4* columns, Lanes4* sum,
                                                           double* diagonal) {
  constexpr int kColumns = kNumLanes<double>;
  const auto& [A, U, size, ends] = tree;
  const auto n = static_cast<ptrdiff_t>(size);
  int* const rows = ListOfThread(size);
  double weighted_trace = 0;
  std::fill_n(sum, n, Lanes4{});
  for (int k = 0; k < n && !(n > kUnpolledDofs && stop.Cancelled()); k += kColumns) {
    const int end = std::min(k + kColumns, size);
    const int count = ListRows(
        ends, end, [k](int i) { return i >= k; }, rows);
    std::fill_n(columns, count, Lanes4{});
    Lanes4 e_k{};
    Lanes4 weight{};
    for (int i = k; i < end; ++i) {
      columns[end - 1 - i][i - k] = 1;
      e_k[i - k] = e[i];
      weight[i - k] = A[i * n + i];
    }
    HalfSolveRows(U, size, rows, count, columns);
    Lanes4 inverse_diagonal{};
    for (int p = 0; p < count; ++p) {
      const ptrdiff_t i = rows[p];
      const Lanes4 absolute = Abs(columns[p]);
      sum[i] += absolute * e_k;
      inverse_diagonal += absolute * absolute * U[i * n + i];
    }
    if (diagonal != nullptr) StoreDiagonal(inverse_diagonal, k, size, diagonal);
    weighted_trace += Sum(inverse_diagonal * weight);
  }
  return weighted_trace;
}

// sum := |L^-1| e. Returns the diagonal of A^-1 weighted by that of A, and puts it into `diagonal`,
// n, unless that is null. Four columns of L^-1 at a time, or one of each of four trees. Forward
// substitution with all signs turned alike would be cheaper, but its bound grows beyond all use for
// the ill-conditioned matrices of long chains. Scratch: columns, n.
template <typename Scalar, typename Size>
inline Scalar MultiplyAbsoluteInverse(const FactoredTree<Scalar, Size>& tree, const Scalar* e,
                                      const StopToken& stop, Lanes4* columns, Lanes4* sum,
                                      Scalar* diagonal) {
  constexpr int kColumns = std::is_same_v<Scalar, Lanes4> ? 1 : 4;
  const auto& [A, L, n, ends] = tree;
  if constexpr (std::is_same_v<Scalar, double> && std::is_same_v<Size, OneDof>) {
    *sum = Lanes4{*e};
    if (diagonal != nullptr) *diagonal = *L;
    return *L * *A;
  }
  Scalar weighted_trace{};
  for (int i = 0; i < n; ++i) sum[i] = Lanes4{};
  const auto add_columns = [&, &A = A, &L = L, &n = n](int k) {
    Lanes4 e_k{};
    Lanes4 weight{};
    for (int i = k; i < n; ++i) columns[i] = Lanes4{};
    if constexpr (kColumns == 1) {
      columns[k] += 1.0;
      e_k = e[k];
      weight = A[k * n + k];
    } else {
      for (int lane = 0; lane < kColumns && k + lane < n; ++lane) {
        columns[k + lane][lane] = 1;
        e_k[lane] = e[k + lane];
        weight[lane] = A[(k + lane) * n + k + lane];
      }
    }
    SolveUnitLower(L, n, columns, k);
    Lanes4 inverse_diagonal{};
    for (int i = k; i < n; ++i) {
      const Lanes4 size = Abs(columns[i]);
      sum[i] += size * e_k;
      inverse_diagonal += size * size * L[i * n + i];
    }
    if (diagonal != nullptr) {
      if constexpr (kColumns == 1) {
        diagonal[k] = inverse_diagonal;
      } else {
        StoreDiagonal(inverse_diagonal, k, n, diagonal);
      }
    }
    weighted_trace += SumOverColumns<Scalar>(inverse_diagonal * weight);
  };
  if constexpr (std::is_same_v<Size, int>) {
    if (n > kScalarDofs) return MultiplyAbsoluteInverseOfU(tree, e, stop, columns, sum, diagonal);
    for (int k = 0; k < n; k += kColumns) add_columns(k);
  } else {
    // GCC does not unroll this loop, nor those in it, by itself: the certificate of single bodies
    // would take a third more instructions.
    constexpr int kSize = Size();
#pragma GCC unroll 8
    for (int k = 0; k < kSize; k += kColumns) add_columns(k);
  }
  return weighted_trace;
}

// 1 / (1 - rho) for a factor of n rows and the trace of D A'^-1 D, D = diag(A)^1/2 (see
// accuracy_certificate.h).
template <typename Scalar, typename Size>
inline Scalar Inflation(Size n, const Scalar& weighted_trace) {
  const Scalar rho = (3.0 * n + 1) * n * kUnitRoundoff * weighted_trace;
  const Scalar infinity = Scalar{} + std::numeric_limits<double>::infinity();
  return rho < 1.0 ? 1.0 / (1.0 - rho) : infinity;
}

// Adds |A^-1/2 grad l|^2 of a tree, and the same of the bounds on the rounding errors of the
// gradient. The diagonal of A^-1 is put into `inverse_diagonal` unless that is null. Scratch of
// 3 n.
template <typename Scalar, typename Size>
inline void AddDualNorms(const FactoredTree<Scalar, Size>& tree, const Scalar* gradient,
                         const Scalar* error, const StopToken& stop, Lanes4* scratch,
                         CertificateSums<Scalar>* sums, Scalar* inverse_diagonal) {
  const auto& [A, L, n, ends] = tree;
  Lanes4* sum = scratch + n;
  auto* x = reinterpret_cast<Scalar*>(scratch + 2 * n);
  const Scalar weighted_trace =
      MultiplyAbsoluteInverse(tree, error, stop, scratch, sum, inverse_diagonal);
  std::copy_n(gradient, static_cast<int>(n), x);
  if constexpr (std::is_same_v<Scalar, double>) {
    HalfSolveTree(TreeFactor{L, ends}, n, x);
  } else {
    SolveUnitLower(L, n, x);
  }
  Scalar gradient2{};
  Scalar error2{};
  for (int i = 0; i < n; ++i) {
    const Scalar e = SumOverColumns<Scalar>(sum[i]);
    gradient2 += x[i] * x[i] * L[i * n + i];
    error2 += e * e * L[i * n + i];
  }
  const Scalar inflation = Inflation(n, weighted_trace);
  sums->gradient2 += inflation * gradient2;
  sums->error2 += inflation * error2;
}

// Bound on the error of a cost at velocities known to within `error` and impulses to within
// `impulse_error`: twice its slope times the error, of which the second half is for the rounding of
// its own terms.
template <size_t rows>
inline double CostError(const std::array<double, rows>& gamma,
                        const std::array<double, rows>& impulse_error,
                        const std::array<double, rows>& error) {
  double sum = 0;
  for (size_t r = 0; r < rows; ++r) sum += (std::abs(gamma[r]) + impulse_error[r]) * error[r];
  return 2 * sum;
}
template <typename Scalar>
inline Scalar CostError(const ContactVector<Scalar>& gamma,
                        const ContactVector<Scalar>& impulse_error,
                        const ContactVector<Scalar>& error) {
  return 2.0 *
         ((Abs(gamma.x) + impulse_error.x) * error.x + (Abs(gamma.y) + impulse_error.y) * error.y +
          (Abs(gamma.n) + impulse_error.n) * error.n);
}

// The certificate of one island, or of four. `terms` is how many the cost adds up.
template <typename Scalar>
inline Scalar GapBound(const CertificateSums<Scalar>& sums, const Scalar& cost, int terms) {
  constexpr int kCostSteps = 128;  // rounding steps of the cost of a law, generously counted
  const Scalar norm = Sqrt(sums.gradient2) + Sqrt(sums.error2);
  const Scalar by_gradient = 0.5 * norm * norm;
  const Scalar by_cost = (1.0 + (kCostSteps + terms) * kUnitRoundoff) * cost + sums.cost_error;
  // False also where one of them is not a number.
  return by_cost < by_gradient ? by_cost : by_gradient;
}

}  // namespace sap
