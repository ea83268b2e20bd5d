#include "solver/front_solve.h"

#include <algorithm>

#include "solver/front_kernels.h"

namespace sap {
namespace {

#pragma GCC diagnostic ignored "-Wpsabi"

// x[s] -= sum_k a[s](k) b[k] for kSlivers slivers of `count` columns. Two sums of alternate columns
// per sliver hide latency.
template <int kSlivers, typename Scalar>
void SubtractSlivers(const Scalar* a, ptrdiff_t stride, const Scalar* b, int count, Scalar* x) {
  using Vector = SliverVector<Scalar>;
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  Vector even[kSlivers];
  Vector odd[kSlivers];
#pragma GCC unroll 4
  for (int s = 0; s < kSlivers; ++s) even[s] = odd[s] = Vector{};
  int k = 0;
  for (; k + 2 <= count; k += 2) {
#pragma GCC unroll 4
    for (int s = 0; s < kSlivers; ++s) {
      even[s] += LoadSliver(a + s * stride + k * kLanes) * b[k];
      odd[s] += LoadSliver(a + s * stride + (k + 1) * kLanes) * b[k + 1];
    }
  }
  if (k < count) {
#pragma GCC unroll 4
    for (int s = 0; s < kSlivers; ++s) even[s] += LoadSliver(a + s * stride + k * kLanes) * b[k];
  }
#pragma GCC unroll 4
  for (int s = 0; s < kSlivers; ++s) {
    StoreSliver(x + s * kLanes, LoadSliver(x + s * kLanes) - (even[s] + odd[s]));
  }
}

// sums[k] += sum_s a[s](k) * x[s], lane by lane, for kSlivers slivers of `count` columns.
template <int kSlivers, typename Scalar>
void AddColumnSums(const Scalar* a, ptrdiff_t stride, const Scalar* x, int count, Scalar* sums) {
  using Vector = SliverVector<Scalar>;
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  Vector rows[kSlivers];
#pragma GCC unroll 4
  for (int s = 0; s < kSlivers; ++s) rows[s] = LoadSliver(x + s * kLanes);
  for (ptrdiff_t k = 0; k < static_cast<ptrdiff_t>(count) * kLanes; k += kLanes) {
    Vector sum = LoadSliver(sums + k);
#pragma GCC unroll 4
    for (int s = 0; s < kSlivers; ++s) sum += LoadSliver(a + s * stride + k) * rows[s];
    StoreSliver(sums + k, sum);
  }
}

template <typename Scalar>
Scalar LaneSum(const Scalar* lanes) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  Scalar half[kLanes / 2];
  for (int i = 0; i < kLanes / 2; ++i) half[i] = lanes[i] + lanes[i + kLanes / 2];
  Scalar sum = half[0];
  for (int i = 1; i < kLanes / 2; ++i) sum += half[i];
  return sum;
}

constexpr int kGroup = 4;

}  // namespace

template <typename Scalar>
void ForwardSolve(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1, Scalar* x2) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  const int pivots = layout.pivots();
  for (int s = 0; s < layout.pivot_slivers(); ++s) {
    const Scalar* sliver = factor + layout.SliverStart(s);
    Scalar* x = x1 + s * kLanes;
    SubtractSlivers<1>(sliver, 0, x1, s * kLanes, x);
    const Scalar* lower = sliver + static_cast<ptrdiff_t>(s) * kLanes * kLanes;
    const int count = std::min(kLanes, pivots - s * kLanes);
    for (int j = 0; j < count; ++j) {
      x[j] *= lower[j * kLanes + j];
      for (int i = j + 1; i < count; ++i) x[i] -= lower[j * kLanes + i] * x[j];
    }
  }
  const ptrdiff_t stride = static_cast<ptrdiff_t>(pivots) * kLanes;
  const int updates = layout.slivers() - layout.pivot_slivers();
  const Scalar* L21 = factor + layout.SliverStart(layout.pivot_slivers());
  int s = 0;
  for (; s + kGroup <= updates; s += kGroup) {
    SubtractSlivers<kGroup>(L21 + s * stride, stride, x1, pivots, x2 + s * kLanes);
  }
  for (; s < updates; ++s) {
    SubtractSlivers<1>(L21 + s * stride, stride, x1, pivots, x2 + s * kLanes);
  }
}

template <typename Scalar>
void BackwardSolve(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1,
                   const Scalar* x2, Scalar* sums) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  const int pivots = layout.pivots();
  std::fill(sums, sums + static_cast<ptrdiff_t>(pivots) * kLanes, Scalar(0));
  const ptrdiff_t stride = static_cast<ptrdiff_t>(pivots) * kLanes;
  const int updates = layout.slivers() - layout.pivot_slivers();
  const Scalar* L21 = factor + layout.SliverStart(layout.pivot_slivers());
  int end = updates;
  for (; end - kGroup >= 0; end -= kGroup) {
    const int s = end - kGroup;
    AddColumnSums<kGroup>(L21 + s * stride, stride, x2 + s * kLanes, pivots, sums);
  }
  for (int s = end - 1; s >= 0; --s) {
    AddColumnSums<1>(L21 + s * stride, stride, x2 + s * kLanes, pivots, sums);
  }
  for (int s = layout.pivot_slivers() - 1; s >= 0; --s) {
    const Scalar* sliver = factor + layout.SliverStart(s);
    const Scalar* lower = sliver + static_cast<ptrdiff_t>(s) * kLanes * kLanes;
    Scalar* x = x1 + s * kLanes;
    const int count = std::min(kLanes, pivots - s * kLanes);
    for (int j = count - 1; j >= 0; --j) {
      Scalar value = x[j] - LaneSum(sums + static_cast<ptrdiff_t>(s * kLanes + j) * kLanes);
      for (int i = j + 1; i < count; ++i) value -= lower[j * kLanes + i] * x[i];
      x[j] = value * lower[j * kLanes + j];
    }
    AddColumnSums<1>(sliver, 0, x, s * kLanes, sums);
  }
}

template void ForwardSolve<double>(const FrontLayout<double>&, const double*, double*, double*);
template void ForwardSolve<float>(const FrontLayout<float>&, const float*, float*, float*);
template void BackwardSolve<double>(const FrontLayout<double>&, const double*, double*,
                                    const double*, double*);
template void BackwardSolve<float>(const FrontLayout<float>&, const float*, float*, const float*,
                                   float*);

}  // namespace sap
