// The innermost loops on slivers (front_layout.h): tiles of kTileSlivers slivers by kTileColumns
// columns that stay in registers while a product of two rows of slivers is subtracted.
//
//             k ->                   columns j .. j+3 of the tile
//   a[0]  |0 1 2 3 ...|      b  |0 1 2 3 ...|     lanes of one sliver: row j of the factor
//   a[1]  |0 1 2 3 ...|                           multiplies column j of the tile
//   a[2]  |0 1 2 3 ...|
//
//   tile(row, column) -= sum_k a(row, k) b(column, k)
//
// Sums run over k in ascending order in every tile shape, so that it does not matter for the bits
// how rows are divided into tiles. Vectors are the compiler's, so that this builds for any target.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

namespace sap {

// Calls body with a number of 1 to kMax as a constant.
template <int kMax, typename Body>
inline auto WithConstant(int number, Body&& body) {
  if constexpr (kMax > 1) {
    if (number < kMax) return WithConstant<kMax - 1>(number, body);
  }
  return body(std::integral_constant<int, kMax>());
}

typedef double DoubleLanes __attribute__((vector_size(32)));
typedef float FloatLanes __attribute__((vector_size(32)));

template <typename Scalar>
struct SliverTraits;
template <>
struct SliverTraits<double> {
  using Vector = DoubleLanes;
};
template <>
struct SliverTraits<float> {
  using Vector = FloatLanes;
};

template <typename Scalar>
using SliverVector = typename SliverTraits<Scalar>::Vector;

constexpr int kTileColumns = 4;
// Twelve accumulators hide the latency of two multiply-add units. Processors with sixteen registers
// of 16 bytes have room for one sliver only.
#if defined(__AVX__) || defined(__aarch64__)
constexpr int kTileSlivers = 3;
#else
constexpr int kTileSlivers = 1;
#endif

template <typename Scalar>
inline SliverVector<Scalar> LoadSliver(const Scalar* from) {
  SliverVector<Scalar> value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename Scalar>
inline void StoreSliver(Scalar* to, const SliverVector<Scalar>& value) {
  std::memcpy(to, &value, sizeof(value));
}

template <typename Scalar, int kSlivers, int kColumns>
struct Tile {
  using Vector = SliverVector<Scalar>;
  static constexpr int kLanes = sizeof(Vector) / sizeof(Scalar);
  Vector at[kSlivers][kColumns];

  // Columns of each sliver are `stride` apart.
  [[gnu::always_inline]] void Load(Scalar* const (&from)[kSlivers], ptrdiff_t stride) {
#pragma GCC unroll 4
    for (int s = 0; s < kSlivers; ++s) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) at[s][c] = LoadSliver(from[s] + c * stride);
    }
  }

  [[gnu::always_inline]] void Store(Scalar* const (&to)[kSlivers], ptrdiff_t stride) const {
#pragma GCC unroll 4
    for (int s = 0; s < kSlivers; ++s) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) StoreSliver(to[s] + c * stride, at[s][c]);
    }
  }

  [[gnu::always_inline]] void Clear() {
#pragma GCC unroll 4
    for (int s = 0; s < kSlivers; ++s) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) at[s][c] = Vector{};
    }
  }

  [[gnu::always_inline]] void SubtractProduct(const Scalar* const (&a)[kSlivers], const Scalar* b,
                                              int count) {
    for (ptrdiff_t k = 0; k < static_cast<ptrdiff_t>(count) * kLanes; k += kLanes) {
      Vector row[kSlivers];
#pragma GCC unroll 4
      for (int s = 0; s < kSlivers; ++s) row[s] = LoadSliver(a[s] + k);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        const Scalar factor = b[k + c];
#pragma GCC unroll 4
        for (int s = 0; s < kSlivers; ++s) at[s][c] -= row[s] * factor;
      }
    }
  }

  // tile := tile L^-T for the lower triangle L whose entry (i, j) is at lower[j * kLanes + i], with
  // the inverse of the pivots on the diagonal.
  [[gnu::always_inline]] void SolveLower(const Scalar* lower) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 4
      for (int j = 0; j < c; ++j) {
        const Scalar factor = lower[j * kLanes + c];
#pragma GCC unroll 4
        for (int s = 0; s < kSlivers; ++s) at[s][c] -= at[s][j] * factor;
      }
      const Scalar inverse = lower[c * kLanes + c];
#pragma GCC unroll 4
      for (int s = 0; s < kSlivers; ++s) at[s][c] *= inverse;
    }
  }
};

// Cholesky factor of the kColumns x kColumns lower triangle, entries as above, in place, with the
// inverse of the pivots on the diagonal. False at a pivot that is not positive and finite.
template <typename Scalar, int kColumns, int kLanes>
inline bool FactorLower(Scalar* lower) {
  Scalar L[kColumns][kColumns];
  for (int j = 0; j < kColumns; ++j) {
    for (int i = j; i < kColumns; ++i) L[i][j] = lower[j * kLanes + i];
  }
  for (int j = 0; j < kColumns; ++j) {
    const Scalar pivot = L[j][j];
    if (!(pivot > 0) || !(pivot <= std::numeric_limits<Scalar>::max())) return false;
    const Scalar inverse = 1 / std::sqrt(pivot);
    L[j][j] = inverse;
    for (int i = j + 1; i < kColumns; ++i) {
      L[i][j] *= inverse;
      for (int k = j + 1; k <= i; ++k) L[i][k] -= L[i][j] * L[k][j];
    }
  }
  for (int j = 0; j < kColumns; ++j) {
    for (int i = j; i < kColumns; ++i) lower[j * kLanes + i] = L[i][j];
  }
  return true;
}

}  // namespace sap
