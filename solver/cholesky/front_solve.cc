#include "solver/cholesky/front_solve.h"

#include <algorithm>

#include "solver/cholesky/front_kernels.h"

namespace sap {
namespace {

// Slivers read together: enough independent sums to hide latency, enough streams for the
// prefetcher.
constexpr int kGroup = 4;

// x[s] -= sum_k rows[s](k) b[k] for kSlivers slivers of `count` columns.
template <int kSlivers, typename Scalar>
inline void SubtractSlivers(const Scalar* const (&rows)[kGroup], const Scalar* b, int count,
                            Scalar* x) {
  using Vector = RegisterLanes<Scalar>;
  constexpr int kLanes = kNumLanes<Scalar>;
  constexpr int kSums = kSlivers * kRegisters<Scalar>;
  // Sums over the even and the odd columns.
  Vector even[kSums];
  Vector odd[kSums];
#pragma GCC unroll 8
  for (int r = 0; r < kSums; ++r) even[r] = odd[r] = Vector{};
  int k = 0;
  for (; k + 2 <= count; k += 2) {
#pragma GCC unroll 8
    for (int r = 0; r < kSums; ++r) {
      const Scalar* row = RegisterStart(rows, r) + k * kLanes;
      even[r] = MultiplyAdd(Load<Vector>(row), b[k], even[r]);
      odd[r] = MultiplyAdd(Load<Vector>(row + kLanes), b[k + 1], odd[r]);
    }
  }
  if (k < count) {
#pragma GCC unroll 8
    for (int r = 0; r < kSums; ++r) {
      even[r] = MultiplyAdd(Load<Vector>(RegisterStart(rows, r) + k * kLanes), b[k], even[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kSums; ++r) {
    Scalar* to = x + r * kRegisterLanes<Scalar>;
    Store(to, Load<Vector>(to) - (even[r] + odd[r]));
  }
}

// sums[k] += sum_s rows[s](k) * x[s], lane by lane, for kSlivers slivers of `count` columns.
template <int kSlivers, typename Scalar>
inline void AddColumnSums(const Scalar* const (&rows)[kGroup], const Scalar* x, int count,
                          Scalar* sums) {
  using Vector = RegisterLanes<Scalar>;
  constexpr int kLanes = kNumLanes<Scalar>;
  constexpr int kParts = kRegisters<Scalar>;
  Vector factor[kSlivers * kParts];
#pragma GCC unroll 8
  for (int r = 0; r < kSlivers * kParts; ++r) {
    factor[r] = Load<Vector>(x + r * kRegisterLanes<Scalar>);
  }
  for (ptrdiff_t k = 0; k < static_cast<ptrdiff_t>(count) * kLanes; k += kLanes) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      Scalar* to = sums + k + part * kRegisterLanes<Scalar>;
      Vector sum = Load<Vector>(to);
#pragma GCC unroll 8
      for (int r = part; r < kSlivers * kParts; r += kParts) {
        sum = MultiplyAdd(Load<Vector>(RegisterStart(rows, r) + k), factor[r], sum);
      }
      Store(to, sum);
    }
  }
}

// x := L^-1 x for the diagonal tile of a sliver. The diagonal holds the inverses of the pivots, and
// zeros in padded rows.
template <typename Scalar>
inline void SolveDiagonalTile(const Scalar* lower, Scalar* x) {
  constexpr int kLanes = kNumLanes<Scalar>;
  Scalar value[kLanes];
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; ++i) value[i] = x[i];
#pragma GCC unroll 8
  for (int j = 0; j < kLanes; ++j) {
    value[j] *= lower[j * kLanes + j];
#pragma GCC unroll 8
    for (int i = j + 1; i < kLanes; ++i)
      value[i] = MultiplySubtract(lower[j * kLanes + i], value[j], value[i]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; ++i) x[i] = value[i];
}

// x := L^-T (x - s) for the diagonal tile of a sliver; s_j is the sum of the kLanes
// entries of column j in `sums`.
template <typename Scalar>
inline void SolveTransposedDiagonalTile(const Scalar* lower, const Scalar* sums, Scalar* x) {
  constexpr int kLanes = kNumLanes<Scalar>;
  Scalar value[kLanes];
#pragma GCC unroll 8
  for (int j = 0; j < kLanes; ++j) {
    Scalar half[kLanes / 2];
#pragma GCC unroll 4
    for (int i = 0; i < kLanes / 2; ++i) {
      half[i] = sums[j * kLanes + i] + sums[j * kLanes + i + kLanes / 2];
    }
    Scalar sum = half[0];
#pragma GCC unroll 4
    for (int i = 1; i < kLanes / 2; ++i) sum += half[i];
    value[j] = x[j] - sum;
  }
#pragma GCC unroll 8
  for (int i = kLanes - 1; i >= 0; --i) {
    value[i] *= lower[i * kLanes + i];
#pragma GCC unroll 8
    for (int j = 0; j < i; ++j)
      value[j] = MultiplySubtract(lower[j * kLanes + i], value[i], value[j]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; ++i) x[i] = value[i];
}

// The first column before `end` in which one of the slivers has entries.
int FirstColumn(const int* starts, int first, int count, int end) {
  if (starts == nullptr) return 0;
  return std::min(end, *std::min_element(starts + first, starts + first + count));
}

}  // namespace

template <typename Scalar>
void ForwardSolvePivots(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1,
                        const int* starts) {
  constexpr int kLanes = kNumLanes<Scalar>;
  const Scalar* rows[kGroup];
  for (int first = 0; first < layout.pivot_slivers(); first += kGroup) {
    const int count = std::min(kGroup, layout.pivot_slivers() - first);
    const int start = FirstColumn(starts, first, count, first * kLanes);
    for (int s = 0; s < count; ++s) {
      rows[s] = factor + layout.SliverStart(first + s) + start * kLanes;
    }
    WithConstant<kGroup>(count, [&](auto slivers) {
      SubtractSlivers<slivers>(rows, x1 + start, first * kLanes - start, x1 + first * kLanes);
    });
    for (int s = 0; s < count; ++s) {
      rows[0] = factor + layout.SliverStart(first + s) + first * kLanes * kLanes;
      Scalar* x = x1 + (first + s) * kLanes;
      SubtractSlivers<1>(rows, x1 + first * kLanes, s * kLanes, x);
      SolveDiagonalTile(rows[0] + s * kLanes * kLanes, x);
    }
  }
}

template <typename Scalar>
void ForwardSolveUpdates(const FrontLayout<Scalar>& layout, const Scalar* factor, const Scalar* x1,
                         int sliver_begin, int sliver_end, Scalar* x2) {
  constexpr int kLanes = kNumLanes<Scalar>;
  const Scalar* rows[kGroup];
  for (int first = sliver_begin; first < sliver_end; first += kGroup) {
    const int count = std::min(kGroup, sliver_end - first);
    for (int s = 0; s < count; ++s) {
      rows[s] = factor + layout.SliverStart(layout.pivot_slivers() + first + s);
    }
    WithConstant<kGroup>(count, [&](auto slivers) {
      SubtractSlivers<slivers>(rows, x1, layout.pivots(), x2 + first * kLanes);
    });
  }
}

template <typename Scalar>
void SumUpdates(const FrontLayout<Scalar>& layout, const Scalar* factor, const Scalar* x2,
                int column_begin, int column_end, Scalar* sums) {
  constexpr int kLanes = kNumLanes<Scalar>;
  const ptrdiff_t start = static_cast<ptrdiff_t>(column_begin) * kLanes;
  const int count = std::min(column_end, layout.pivots()) - column_begin;
  std::fill(sums + start, sums + static_cast<ptrdiff_t>(column_end) * kLanes, Scalar{0});
  const Scalar* rows[kGroup];
  for (int end = layout.slivers(); end > layout.pivot_slivers(); end -= kGroup) {
    const int first = std::max(end - kGroup, layout.pivot_slivers());
    for (int s = 0; s < end - first; ++s) rows[s] = factor + layout.SliverStart(first + s) + start;
    WithConstant<kGroup>(end - first, [&](auto slivers) {
      AddColumnSums<slivers>(rows, x2 + (first - layout.pivot_slivers()) * kLanes, count,
                             sums + start);
    });
  }
}

template <typename Scalar>
void BackwardSolvePivots(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1,
                         Scalar* sums, const int* starts) {
  constexpr int kLanes = kNumLanes<Scalar>;
  const Scalar* rows[kGroup];
  for (int end = layout.pivot_slivers(); end > 0; end -= kGroup) {
    const int first = std::max(end - kGroup, 0);
    Scalar* group_sums = sums + static_cast<ptrdiff_t>(first) * kLanes * kLanes;
    for (int s = end - first - 1; s >= 0; --s) {
      rows[0] = factor + layout.SliverStart(first + s) + first * kLanes * kLanes;
      Scalar* x = x1 + (first + s) * kLanes;
      SolveTransposedDiagonalTile(rows[0] + s * kLanes * kLanes, group_sums + s * kLanes * kLanes,
                                  x);
      AddColumnSums<1>(rows, x, s * kLanes, group_sums);
    }
    const int start = FirstColumn(starts, first, end - first, first * kLanes);
    for (int s = 0; s < end - first; ++s) {
      rows[s] = factor + layout.SliverStart(first + s) + start * kLanes;
    }
    WithConstant<kGroup>(end - first, [&](auto slivers) {
      AddColumnSums<slivers>(rows, x1 + first * kLanes, first * kLanes - start,
                             sums + static_cast<ptrdiff_t>(start) * kLanes);
    });
  }
}

template void ForwardSolvePivots<double>(const FrontLayout<double>&, const double*, double*,
                                         const int*);
template void ForwardSolveUpdates<double>(const FrontLayout<double>&, const double*, const double*,
                                          int, int, double*);
template void SumUpdates<double>(const FrontLayout<double>&, const double*, const double*, int, int,
                                 double*);
template void BackwardSolvePivots<double>(const FrontLayout<double>&, const double*, double*,
                                          double*, const int*);
template void ForwardSolvePivots<float>(const FrontLayout<float>&, const float*, float*,
                                        const int*);
template void ForwardSolveUpdates<float>(const FrontLayout<float>&, const float*, const float*, int,
                                         int, float*);
template void SumUpdates<float>(const FrontLayout<float>&, const float*, const float*, int, int,
                                float*);
template void BackwardSolvePivots<float>(const FrontLayout<float>&, const float*, float*, float*,
                                         const int*);

}  // namespace sap
