// Register-blocked kernels on slivers (front_layout.h). A tile of kTileSlivers slivers by
// kTileColumns columns stays in registers while a product is subtracted from it:
//
//   tile(row, column) -= sum_k a(row, k) b(column, k)
//
//             k ->                      k ->
//   a[0]  |0 1 2 3 ...|         b  |0 1 2 3 ...|
//   a[1]  |0 1 2 3 ...|
//   a[2]  |0 1 2 3 ...|         lane j of b multiplies column j of the tile
//
// Sums run over k in ascending order in every shape of tile, so the bits do not depend on how rows
// are divided into tiles. A column of a sliver is one register, or two that hold half of it each.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "solver/parallel/simd.h"

namespace sap {

// Calls body with a number in 1 .. kMax as a compile-time constant.
template <int kMax, typename Body>
inline auto WithConstant(int number, Body&& body) {
  if constexpr (kMax > 1) {
    if (number < kMax) return WithConstant<kMax - 1>(number, body);
  }
  return body(std::integral_constant<int, kMax>());
}

constexpr int kTileColumns = 4;
// Twelve accumulators hide the latency of two multiply-add units. Processors with sixteen registers
// of 16 bytes have room for one sliver only.
#if defined(__AVX__) || defined(__aarch64__)
constexpr int kTileSlivers = 3;
#else
constexpr int kTileSlivers = 1;
#endif

// Registers of a column of a sliver, and lanes of a register.
template <typename Scalar>
constexpr int kRegisters = kNumLanes<Scalar> * sizeof(Scalar) / sizeof(RegisterLanes<Scalar>);
template <typename Scalar>
constexpr int kRegisterLanes = kNumLanes<Scalar> / kRegisters<Scalar>;

// Where register r of the first column of several slivers is in memory.
template <typename Scalar, int kSlivers>
[[gnu::always_inline]] inline Scalar* RegisterStart(Scalar* const (&slivers)[kSlivers], int r) {
  using Value = std::remove_const_t<Scalar>;
  return slivers[r / kRegisters<Value>] + r % kRegisters<Value> * kRegisterLanes<Value>;
}

template <typename Scalar, int kSlivers, int kColumns>
struct Tile {
  using Vector = RegisterLanes<Scalar>;
  static constexpr int kLanes = kNumLanes<Scalar>;
  static constexpr int kRows = kSlivers * kRegisters<Scalar>;
  Vector at[kRows][kColumns];

  // Columns of each sliver are `stride` entries apart.
  [[gnu::always_inline]] void Load(Scalar* const (&from)[kSlivers], ptrdiff_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c)
        at[r][c] = sap::Load<Vector>(RegisterStart(from, r) + c * stride);
    }
  }

  [[gnu::always_inline]] void Store(Scalar* const (&to)[kSlivers], ptrdiff_t stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) sap::Store(RegisterStart(to, r) + c * stride, at[r][c]);
    }
  }

  [[gnu::always_inline]] void Clear() {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) at[r][c] = Vector{};
    }
  }

  [[gnu::always_inline]] void SubtractProduct(const Scalar* const (&a)[kSlivers], const Scalar* b,
                                              int count) {
    for (ptrdiff_t k = 0; k < static_cast<ptrdiff_t>(count) * kLanes; k += kLanes) {
      Vector row[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) row[r] = sap::Load<Vector>(RegisterStart(a, r) + k);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        const Scalar factor = b[k + c];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) at[r][c] = MultiplySubtract(row[r], factor, at[r][c]);
      }
    }
  }

  // tile := tile L^-T. Entry (i, j) of the lower triangle L is at lower[j * kLanes + i]; its
  // diagonal holds the inverses of the pivots.
  [[gnu::always_inline]] void SolveLower(const Scalar* lower) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 4
      for (int j = 0; j < c; ++j) {
        const Scalar factor = lower[j * kLanes + c];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) at[r][c] = MultiplySubtract(at[r][j], factor, at[r][c]);
      }
      const Scalar inverse = lower[c * kLanes + c];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) at[r][c] *= inverse;
    }
  }
};

// Replaces a kColumns x kColumns lower triangle by its Cholesky factor, both stored as in
// SolveLower. False at a pivot that is not positive and finite.
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
      for (int k = j + 1; k <= i; ++k) L[i][k] = MultiplySubtract(L[i][j], L[k][j], L[i][k]);
    }
  }
  for (int j = 0; j < kColumns; ++j) {
    for (int i = j; i < kColumns; ++i) lower[j * kLanes + i] = L[i][j];
  }
  return true;
}

}  // namespace sap
