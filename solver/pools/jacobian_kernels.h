// Products with the Jacobian block J, row-major, of one constraint and one tree of n degrees of
// freedom: 3 x n for contacts in the plain friction cone.
//
// Scalar is double, or Lanes4 for four matrices of the same size, an entry of each per vector.
// Sizes known at compile time unroll and vectorize; ForSize picks them: six degrees of freedom, a
// free body, are by far the most frequent, everything else runs through loops.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include "solver/cholesky/dense_sizes.h"
#include "solver/laws/friction_cone.h"
#include "solver/laws/law_types.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/simd.h"

namespace sap {

// v_c += J v.
template <typename Scalar, typename Size>
inline void AddJv(const Scalar* J, Size n, const Scalar* v, ContactVector<Scalar>* v_c) {
  Scalar x{}, y{}, z{};
  for (int i = 0; i < n; ++i) {
    x = MultiplyAdd(J[i], v[i], x);
    y = MultiplyAdd(J[n + i], v[i], y);
    z = MultiplyAdd(J[2 * n + i], v[i], z);
  }
  v_c->x += x;
  v_c->y += y;
  v_c->n += z;
}

// v_c += |J| |v|.
template <typename Scalar, typename Size>
inline void AddAbsoluteJv(const Scalar* J, Size n, const Scalar* v, ContactVector<Scalar>* v_c) {
  for (int i = 0; i < n; ++i) {
    const Scalar size = Abs(v[i]);
    v_c->x += Abs(J[i]) * size;
    v_c->y += Abs(J[n + i]) * size;
    v_c->n += Abs(J[2 * n + i]) * size;
  }
}

// f += |J|' (errors + roundoff |gamma|).
template <typename Scalar, typename Size>
inline void AddAbsoluteJtGamma(const Scalar* __restrict J, Size n,
                               const ContactVector<Scalar>& errors, double roundoff,
                               const ContactVector<Scalar>& gamma, Scalar* __restrict f) {
  const Scalar x = errors.x + roundoff * Abs(gamma.x);
  const Scalar y = errors.y + roundoff * Abs(gamma.y);
  const Scalar z = errors.n + roundoff * Abs(gamma.n);
  for (int i = 0; i < n; ++i) {
    f[i] += Abs(J[i]) * x + Abs(J[n + i]) * y + Abs(J[2 * n + i]) * z;
  }
}

// f += J' gamma.
template <typename Scalar, typename Size>
inline void AddJtGamma(const Scalar* __restrict J, Size n, const ContactVector<Scalar>& gamma,
                       Scalar* __restrict f) {
  for (int i = 0; i < n; ++i) {
    const Scalar tangential = MultiplyAdd(J[n + i], gamma.y, MultiplyAdd(J[i], gamma.x, f[i]));
    f[i] = MultiplyAdd(J[2 * n + i], gamma.n, tangential);
  }
}

// A row of six as four lanes and two.
struct SixLanes {
  Lanes4 head;
  Lanes2 tail;

  explicit SixLanes(const double* row) : head(Load<Lanes4>(row)), tail(Load<Lanes2>(row + 4)) {}
  SixLanes(const Lanes4& first, const Lanes2& last) : head(first), tail(last) {}
  SixLanes operator*(double factor) const { return {head * factor, tail * factor}; }
};

inline SixLanes MultiplyAdd(const SixLanes& a, double b, const SixLanes& c) {
  return {MultiplyAdd(a.head, b, c.head), MultiplyAdd(a.tail, b, c.tail)};
}

// H += J_a' G J_b for a six-column J_b: three rows of G J_b in registers, then one row of H per
// column of J_a.
template <typename Size>
inline void AddJtGJ(const double* __restrict J_a, Size n_a, const SymmetricMatrix3<double>& G,
                    const double* __restrict J_b, SixDofs, double* __restrict H) {
  const SixLanes x(J_b);
  const SixLanes y(J_b + 6);
  const SixLanes n(J_b + 12);
  const SixLanes g_x = MultiplyAdd(n, G.xn, MultiplyAdd(y, G.xy, x * G.xx));
  const SixLanes g_y = MultiplyAdd(n, G.yn, MultiplyAdd(y, G.yy, x * G.xy));
  const SixLanes g_n = MultiplyAdd(n, G.nn, MultiplyAdd(y, G.yn, x * G.xn));
  for (int i = 0; i < n_a; ++i) {
    double* row = H + 6 * i;
    const SixLanes tangential =
        MultiplyAdd(g_y, J_a[n_a + i], MultiplyAdd(g_x, J_a[i], SixLanes(row)));
    const SixLanes sum = MultiplyAdd(g_n, J_a[2 * n_a + i], tangential);
    Store(row, sum.head);
    Store(row + 4, sum.tail);
  }
}

// H += J_a' G J_b, n_a x n_b row-major.
template <typename Size>
inline void AddJtGJ(const double* __restrict J_a, Size n_a, const SymmetricMatrix3<double>& G,
                    const double* __restrict J_b, int n_b, double* __restrict H) {
  for (int i = 0; i < n_a; ++i) {
    const double a_x = J_a[i];
    const double a_y = J_a[n_a + i];
    const double a_n = J_a[2 * n_a + i];
    if (a_x == 0 && a_y == 0 && a_n == 0)
      continue;  // most dofs of a large tree do not move a point
    const double g_x = MultiplyAdd(a_n, G.xn, MultiplyAdd(a_y, G.xy, a_x * G.xx));
    const double g_y = MultiplyAdd(a_n, G.yn, MultiplyAdd(a_y, G.yy, a_x * G.xy));
    const double g_n = MultiplyAdd(a_n, G.nn, MultiplyAdd(a_y, G.yn, a_x * G.xn));
    for (int j = 0; j < n_b; ++j) {
      const double tangential =
          MultiplyAdd(g_y, J_b[n_b + j], MultiplyAdd(g_x, J_b[j], H[i * n_b + j]));
      H[i * n_b + j] = MultiplyAdd(g_n, J_b[2 * n_b + j], tangential);
    }
  }
}

// Kernels for Jacobians of any number of rows.
template <typename Size, size_t rows>
inline void AddJv(const double* J, Size n, const double* v, std::array<double, rows>* v_c) {
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum = MultiplyAdd(J[r * n + i], v[i], sum);
    (*v_c)[r] += sum;
  }
}

template <typename Size, size_t rows>
inline void AddAbsoluteJv(const double* J, Size n, const double* v, std::array<double, rows>* v_c) {
  for (size_t r = 0; r < rows; ++r) {
    for (int i = 0; i < n; ++i) (*v_c)[r] += std::abs(J[r * n + i] * v[i]);
  }
}

template <typename Size, size_t rows>
inline void AddAbsoluteJtGamma(const double* J, Size n, const std::array<double, rows>& errors,
                               double roundoff, const std::array<double, rows>& gamma, double* f) {
  for (size_t r = 0; r < rows; ++r) {
    const double size = errors[r] + roundoff * std::abs(gamma[r]);
    for (int i = 0; i < n; ++i) f[i] += std::abs(J[r * n + i]) * size;
  }
}

template <typename Size, size_t rows>
inline void AddJtGamma(const double* __restrict J, Size n, const std::array<double, rows>& gamma,
                       double* __restrict f) {
  for (size_t r = 0; r < rows; ++r) {
    for (int i = 0; i < n; ++i) f[i] = MultiplyAdd(J[r * n + i], gamma[r], f[i]);
  }
}

template <int rows, typename LowSize, typename HighSize>
inline void AddJtGJ(const double* __restrict J_a, LowSize n_a, const LawMatrix<rows>& G,
                    const double* __restrict J_b, HighSize n_b, double* __restrict H) {
  for (int i = 0; i < n_a; ++i) {
    bool moves = false;
    for (int s = 0; s < rows; ++s) moves |= J_a[s * n_a + i] != 0;
    if (!moves) continue;
    LawVector<rows> g{};
    for (int s = 0; s < rows; ++s) {
      for (int r = 0; r < rows; ++r) g[r] = MultiplyAdd(J_a[s * n_a + i], G(s, r), g[r]);
    }
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < n_b; ++j) {
        H[i * n_b + j] = MultiplyAdd(g[r], J_b[r * n_b + j], H[i * n_b + j]);
      }
    }
  }
}

// The columns of a contact's block in a tree of more than kScalarDofs, by fours: a limb's contact
// moves few degrees of freedom of the robot. Four columns of zeros are left out. The last four of a
// number that is not a multiple of four begin earlier, with zeros where another four has a column.
class ColumnFours {
 public:
  static constexpr int kColumns = kNumLanes<double>;

  // `list` has room for as many numbers as the block has columns.
  explicit ColumnFours(const int* list) : list_(list) {}

  // Lists the columns of a block of `rows` rows that are not zero.
  static void Find(const double* J, int rows, int n, int* list) {
    int* end = list + 1;
    for (int first = 0; first < n; first += kColumns) {
      bool moves = false;
      for (int r = 0; r < rows; ++r) {
        for (int i = first; i < std::min(first + kColumns, n); ++i) moves |= J[r * n + i] != 0;
      }
      if (moves) *end++ = first;
    }
    list[0] = static_cast<int>(end - list - 1);
  }

  // Calls body(column, load) for each, where load(row) is the four entries of a row of the block.
  template <typename Body>
  void ForEach(int n, Body&& body) const {
    for (int f = 1; f <= list_[0]; ++f) {
      const int first = list_[f];
      if (first + kColumns <= n) {
        body(first, [first](const double* row) { return Load<Lanes4>(row + first); });
        continue;
      }
      const int from = n - kColumns;
      Lanes4 keeps;
      for (int lane = 0; lane < kColumns; ++lane) keeps[lane] = from + lane < first ? 0 : 1;
      body(from, [from, keeps](const double* row) { return Load<Lanes4>(row + from) * keeps; });
    }
  }

 private:
  const int* list_;
};

template <typename Vector>
constexpr int kRowsOf = std::tuple_size_v<std::remove_cvref_t<decltype(ToLawVector(Vector{}))>>;

// v_c += sums over these columns: add(entries, v, sum) is a sum with four columns more.
template <typename Vector, typename Add>
inline void AddColumnSums(const double* J, int n, ColumnFours columns, const double* v, Add&& add,
                          Vector* v_c) {
  constexpr int kRows = kRowsOf<Vector>;
  Lanes4 sums[kRows] = {};
  columns.ForEach(n, [&](int first, auto&& load) {
    const auto v_first = Load<Lanes4>(v + first);
    for (int r = 0; r < kRows; ++r) sums[r] = add(load(J + r * n), v_first, sums[r]);
  });
  LawVector<kRows> to = ToLawVector(*v_c);
  for (int r = 0; r < kRows; ++r) to[r] += Sum(sums[r]);
  FromLawVector(to, v_c);
}

// Kernels by these columns, for any number of rows. Not inlined: loops over contacts of small
// trees, which are far more frequent, would be slower around them.
template <typename Vector>
[[gnu::noinline]] void AddJv(const double* J, int n, ColumnFours columns, const double* v,
                             Vector* v_c) {
  const auto add = [](const Lanes4& entries, const Lanes4& v_four, const Lanes4& sum) {
    return MultiplyAdd(entries, v_four, sum);
  };
  AddColumnSums(J, n, columns, v, add, v_c);
}

template <typename Vector>
[[gnu::noinline]] void AddAbsoluteJv(const double* J, int n, ColumnFours columns, const double* v,
                                     Vector* v_c) {
  const auto add = [](const Lanes4& entries, const Lanes4& v_four, const Lanes4& sum) {
    return sum + Abs(entries * v_four);
  };
  AddColumnSums(J, n, columns, v, add, v_c);
}

template <typename Vector>
[[gnu::noinline]] void AddJtGamma(const double* J, int n, ColumnFours columns, const Vector& gamma,
                                  double* f) {
  const auto impulse = ToLawVector(gamma);
  columns.ForEach(n, [&](int first, auto&& load) {
    auto sum = Load<Lanes4>(f + first);
    for (int r = 0; r < kRowsOf<Vector>; ++r) sum = MultiplyAdd(load(J + r * n), impulse[r], sum);
    Store(f + first, sum);
  });
}

template <typename Vector>
[[gnu::noinline]] void AddAbsoluteJtGamma(const double* J, int n, ColumnFours columns,
                                          const Vector& errors, double roundoff,
                                          const Vector& gamma, double* f) {
  const auto error = ToLawVector(errors);
  const auto impulse = ToLawVector(gamma);
  columns.ForEach(n, [&](int first, auto&& load) {
    auto sum = Load<Lanes4>(f + first);
    for (int r = 0; r < kRowsOf<Vector>; ++r) {
      sum += Abs(load(J + r * n)) * (error[r] + roundoff * std::abs(impulse[r]));
    }
    Store(f + first, sum);
  });
}

// H += J' G J of one block.
template <int rows>
[[gnu::noinline]] void AddJtGJ(const double* J, int n, ColumnFours columns,
                               const LawMatrix<rows>& G, double* H) {
  constexpr int kColumns = ColumnFours::kColumns;
  columns.ForEach(n, [&](int i, auto&& load_i) {
    double g[rows][kColumns];  // G J of these columns
    for (int r = 0; r < rows; ++r) {
      Lanes4 sum{};
      for (int s = 0; s < rows; ++s) sum = MultiplyAdd(load_i(J + s * n), G(s, r), sum);
      Store(g[r], sum);
    }
    columns.ForEach(n, [&](int j, auto&& load_j) {
      Lanes4 of_row[rows];
#pragma GCC unroll 6
      for (int r = 0; r < rows; ++r) of_row[r] = load_j(J + r * n);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        double* to = H + static_cast<ptrdiff_t>(i + c) * n + j;
        auto sum = Load<Lanes4>(to);
#pragma GCC unroll 6
        for (int r = 0; r < rows; ++r) sum = MultiplyAdd(of_row[r], g[r][c], sum);
        Store(to, sum);
      }
    });
  });
}

// y = A x for a symmetric n x n row-major A.
template <typename Scalar, typename Size>
inline void MultiplySymmetric(const Scalar* __restrict A, Size n, const Scalar* __restrict x,
                              Scalar* __restrict y) {
  for (int j = 0; j < n; ++j) y[j] = A[j] * x[0];
  for (int i = 1; i < n; ++i) {
    for (int j = 0; j < n; ++j) y[j] = MultiplyAdd(A[i * n + j], x[i], y[j]);
  }
}

// Calls body(scratch) with `doubles` doubles, uninitialized and aligned to cache lines, for the
// work on one tree: on the stack for small trees, kept by the thread for large ones (kKeptScratch),
// so that a warm step allocates nothing. Not to be nested.
template <typename Body>
inline void WithTreeScratch(size_t doubles, Body&& body) {
  if (doubles <= kStackScratch) {
    alignas(64) double scratch[kStackScratch];
    body(scratch);
    return;
  }
  thread_local GrowingBuffer<double> kept;
  body(kept.Reserve(doubles));
  kept.ReleaseAbove(kKeptScratch);
}

}  // namespace sap
