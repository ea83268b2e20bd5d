#include "solver/cholesky/large_tree.h"

#include <algorithm>
#include <limits>

#include "solver/cholesky/front_solve.h"
#include "solver/cholesky/power_of_two.h"
#include "solver/parallel/growing_buffer.h"

namespace sap {

namespace {

constexpr int kTreeLanes = kNumLanes<double>;

// Finds where the rows of the upper triangle end.
void FindEnds(const double* A, ptrdiff_t n, int* ends) {
  for (ptrdiff_t i = n - 1; i >= 0; --i) {
    int end = EndOfRow(A + i * n, static_cast<int>(i), static_cast<int>(n));
    for (ptrdiff_t j = i + 1; j < end; j = ends[j]) end = std::max(end, ends[j]);
    ends[i] = end;
  }
}

// The power of two next to the largest diagonal entry, by which the matrix is divided: square roots
// would otherwise make the bits depend on the unit of mass.
double UnitOf(const double* A, ptrdiff_t n) {
  double largest = std::numeric_limits<double>::min();
  for (ptrdiff_t i = 0; i < n; ++i) largest = std::max(largest, A[i * n + i]);
  return PowerOfTwoBelow(largest);
}

// The matrix with its rows and columns in reverse order, as a front: row i is row n - 1 - i there.
class ReversedFront {
 public:
  // Memory for entries and starts, which need not be set.
  ReversedFront(int n, double* entries, int* starts)
      : layout_(n, 0), entries_(entries), starts_(starts) {}

  static size_t NumEntries(int n) { return FrontLayout<double>(n, 0).entries(); }
  static size_t NumStarts(int n) { return (n + kTreeLanes - 1) / kTreeLanes; }

  // Copies the upper triangle, times `scale`, and factors it.
  DenseStatus Factor(const double* A, const int* ends, double scale, const StopToken& stop) {
    const ptrdiff_t n = layout_.pivots();
    std::fill_n(entries_, layout_.entries(), 0.0);
    std::fill_n(starts_, NumStarts(layout_.pivots()), layout_.pivots());
    for (ptrdiff_t i = 0; i < n; ++i) {
      double* row = EntriesOf(i);
      for (ptrdiff_t j = i; j < ends[i]; ++j) row[Column(j)] = A[i * n + j] * scale;
      int& start = starts_[(n - 1 - i) / kTreeLanes];
      start = std::min(start, static_cast<int>(n - ends[i]) / kTreeLanes * kTreeLanes);
    }
    ptrdiff_t skipped = 0;
    for (int s = 0; s < layout_.pivot_slivers(); ++s) skipped += kTreeLanes * starts_[s];
    DenseFront<double> front(layout_, entries_);
    // Panels keep a large matrix that is full in cache.
    if (4 * skipped < layout_.entries()) return front.FactorPivots(stop);
    return front.FactorProfile(starts_, stop);
  }

  // From row i of the matrix and its column j to the entry of L.
  double* EntriesOf(ptrdiff_t i) {
    return entries_ + layout_.PivotRowStart(static_cast<int>(layout_.pivots() - 1 - i));
  }
  ptrdiff_t Column(ptrdiff_t j) const { return (layout_.pivots() - 1 - j) * kTreeLanes; }

  const FrontLayout<double>& layout() const { return layout_; }
  const int* starts() const { return starts_; }

 private:
  FrontLayout<double> layout_;
  double* entries_;
  int* starts_;
};

// Memory that a thread keeps for trees that are too large for the stack.
struct KeptMemory {
  GrowingBuffer<double> numbers;
  GrowingBuffer<int> integers;
  GrowingBuffer<int> list;
};
KeptMemory& KeptByThread() {
  thread_local KeptMemory kept;
  return kept;
}

// Calls body(numbers, integers) with so much memory each, on the stack for small trees.
template <typename Body>
DenseStatus WithMemory(size_t numbers, size_t integers, Body&& body) {
  constexpr size_t kStackNumbers = 2176 + 64 * (1 + kTreeLanes);  // a tree of 64 with x and sums
  constexpr size_t kStackIntegers = 64 + 64 / kTreeLanes;
  if (numbers <= kStackNumbers && integers <= kStackIntegers) {
    alignas(64) double on_stack[kStackNumbers];
    int integers_on_stack[kStackIntegers];
    return body(on_stack, integers_on_stack);
  }
  KeptMemory& kept = KeptByThread();
  const DenseStatus status = body(kept.numbers.Reserve(numbers), kept.integers.Reserve(integers));
  kept.numbers.ReleaseAbove(kKeptScratch);
  return status;
}

}  // namespace

DenseStatus FactorLargeTree(double* A, int n, int* ends, const StopToken& stop) {
  FindEnds(A, n, ends);
  const double unit = UnitOf(A, n);
  return WithMemory(
      ReversedFront::NumEntries(n), ReversedFront::NumStarts(n), [&](double* entries, int* starts) {
        ReversedFront front(n, entries, starts);
        const DenseStatus status = front.Factor(A, ends, 1 / unit, stop);
        if (status != DenseStatus::kOk) return status;
        // L sqrt(D) with the inverse of sqrt(D) on the diagonal, to U and the inverse of D.
        const auto size = static_cast<ptrdiff_t>(n);
        for (ptrdiff_t i = size - 1; i >= 0; --i) {
          const double* row = front.EntriesOf(i);
          for (ptrdiff_t j = i + 1; j < ends[i]; ++j) {
            A[i * size + j] = row[front.Column(j)] * A[j * size + j];
          }
          A[i * size + i] = row[front.Column(i)];
        }
        for (ptrdiff_t i = 0; i < size; ++i) {
          const double inverse = A[i * size + i];
          A[i * size + i] = std::min(inverse * inverse / unit, std::numeric_limits<double>::max());
        }
        return status;
      });
}

DenseStatus SolveOnceWithLargeTree(const double* A, int n, double* x, const StopToken& stop) {
  const size_t padded = ReversedFront::NumStarts(n) * kTreeLanes;
  return WithMemory(ReversedFront::NumEntries(n) + padded * (1 + kTreeLanes),
                    n + ReversedFront::NumStarts(n), [&](double* numbers, int* ends) {
                      double* reversed = numbers + ReversedFront::NumEntries(n);
                      double* sums = reversed + padded;
                      ReversedFront front(n, numbers, ends + n);
                      FindEnds(A, n, ends);
                      const double scale = 1 / UnitOf(A, n);
                      const DenseStatus status = front.Factor(A, ends, scale, stop);
                      if (status != DenseStatus::kOk) return status;
                      std::fill(std::reverse_copy(x, x + n, reversed), reversed + padded, 0.0);
                      ForwardSolvePivots(front.layout(), numbers, reversed, front.starts());
                      SumUpdates<double>(front.layout(), numbers, nullptr, 0,
                                         static_cast<int>(padded), sums);
                      BackwardSolvePivots(front.layout(), numbers, reversed, sums, front.starts());
                      for (int i = 0; i < n; ++i) x[i] = reversed[n - 1 - i] * scale;
                      return status;
                    });
}

void HalfSolveLargeTree(const double* U, int n, const int* ends, double* x) {
  for (int i = n - 2; i >= 0; --i) {
    const double* row = U + static_cast<ptrdiff_t>(i) * n;
    Lanes4 sums[2] = {};
    int j = i + 1;
    for (; j + 2 * kTreeLanes <= ends[i]; j += 2 * kTreeLanes) {
#pragma GCC unroll 2
      for (int s = 0; s < 2; ++s) {
        sums[s] = MultiplyAdd(Load<Lanes4>(row + j + s * kTreeLanes),
                              Load<Lanes4>(x + j + s * kTreeLanes), sums[s]);
      }
    }
    double sum = 0;
    for (; j < ends[i]; ++j) sum = MultiplyAdd(row[j], x[j], sum);
    x[i] -= Sum(sums[0] + sums[1]) + sum;
  }
}

void SolveLargeTree(const double* U, int n, const int* ends, double* x) {
  HalfSolveLargeTree(U, n, ends, x);
  const auto size = static_cast<ptrdiff_t>(n);
  for (ptrdiff_t i = 0; i < size; ++i) x[i] *= U[i * size + i];
  for (ptrdiff_t i = 0; i < size; ++i) {
    const double factor = x[i];
    for (ptrdiff_t j = i + 1; j < ends[i]; ++j) {
      x[j] = MultiplySubtract(U[i * size + j], factor, x[j]);
    }
  }
}

int* ListOfThread(int n) { return KeptByThread().list.Reserve(n); }

void HalfSolveRows(const double* U, int n, const int* rows, int count, Lanes4* x) {
  constexpr int kRows = 4;
  int p = 0;
  for (; p + kRows <= count; p += kRows) {
    const double* row[kRows];
    Lanes4 sum[kRows];
    for (int r = 0; r < kRows; ++r) {
      row[r] = U + static_cast<ptrdiff_t>(rows[p + r]) * n;
      sum[r] = x[p + r];
    }
    for (int q = 0; q < p; ++q) {
      const Lanes4 x_q = x[q];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum[r] = MultiplySubtract(x_q, row[r][rows[q]], sum[r]);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int q = 0; q < r; ++q) sum[r] = MultiplySubtract(sum[q], row[r][rows[p + q]], sum[r]);
      x[p + r] = sum[r];
    }
  }
  for (; p < count; ++p) {
    const double* row = U + static_cast<ptrdiff_t>(rows[p]) * n;
    for (int q = 0; q < p; ++q) x[p] = MultiplySubtract(x[q], row[rows[q]], x[p]);
  }
}

namespace {

// Rows i to i + kRows - 1 of the upper triangle, which end at `end` or before: y += A x and A' x of
// what they have right of their diagonal block, and of that block itself.
template <int kRows>
void MultiplyRows(const double* A, ptrdiff_t n, ptrdiff_t i, ptrdiff_t end, const double* x,
                  double* y) {
  const double* row[kRows];
  Lanes4 sum[kRows];
  double rest[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    row[r] = A + (i + r) * n;
    sum[r] = Lanes4{};
    rest[r] = y[i + r];
  }
  for (int r = 0; r < kRows; ++r) {
    rest[r] = MultiplyAdd(row[r][i + r], x[i + r], rest[r]);
    for (int c = r + 1; c < kRows; ++c) {
      rest[r] = MultiplyAdd(row[r][i + c], x[i + c], rest[r]);
      rest[c] = MultiplyAdd(row[r][i + c], x[i + r], rest[c]);
    }
  }
  ptrdiff_t j = i + kRows;
  for (; j + kTreeLanes <= end; j += kTreeLanes) {
    const auto x_j = Load<Lanes4>(x + j);
    auto y_j = Load<Lanes4>(y + j);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto entries = Load<Lanes4>(row[r] + j);
      sum[r] = MultiplyAdd(entries, x_j, sum[r]);
      y_j = MultiplyAdd(entries, x[i + r], y_j);
    }
    Store(y + j, y_j);
  }
  for (; j < end; ++j) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      rest[r] = MultiplyAdd(row[r][j], x[j], rest[r]);
      y[j] = MultiplyAdd(row[r][j], x[i + r], y[j]);
    }
  }
  for (int r = 0; r < kRows; ++r) y[i + r] = rest[r] + Sum(sum[r]);
}

}  // namespace

void MultiplyLargeTree(const double* A, int n, const int* ends, const double* x, double* y) {
  constexpr int kRows = 4;
  std::fill_n(y, n, 0.0);
  int i = 0;
  for (; i + kRows <= n; i += kRows) {
    MultiplyRows<kRows>(A, n, i, *std::max_element(ends + i, ends + i + kRows), x, y);
  }
  for (; i < n; ++i) MultiplyRows<1>(A, n, i, ends[i], x, y);
}

}  // namespace sap
