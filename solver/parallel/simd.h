// Vectors of 16 and 32 bytes by the compiler's vector types, which exist for every target. Loads,
// stores, roots and sums have the same names for one double, so that a kernel is written once and
// its remainder runs as scalars.
#pragma once

#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace sap {

typedef double Lanes4 __attribute__((vector_size(32)));
typedef double Lanes2 __attribute__((vector_size(16)));
typedef float FloatLanes8 __attribute__((vector_size(32)));
typedef float FloatLanes4 __attribute__((vector_size(16)));

// The vector of 32 bytes: Lanes4 of doubles, FloatLanes8 of floats.
template <typename Scalar>
using FullLanes = std::conditional_t<std::is_same_v<Scalar, float>, FloatLanes8, Lanes4>;

// Half of it.
template <typename Scalar>
using HalfLanes = std::conditional_t<std::is_same_v<Scalar, float>, FloatLanes4, Lanes2>;

template <typename Scalar>
constexpr int kNumLanes = sizeof(FullLanes<Scalar>) / sizeof(Scalar);

// The vector that a register holds. Wider ones live in memory from one pass of a loop to the next,
// so kernels that keep sums in registers are written in these.
#ifdef __AVX__
template <typename Scalar>
using RegisterLanes = FullLanes<Scalar>;
#else
template <typename Scalar>
using RegisterLanes = HalfLanes<Scalar>;
#endif

// Memory need not be aligned.
template <typename Lanes, typename Scalar>
inline Lanes Load(const Scalar* from) {
  Lanes value;
  std::memcpy(&value, from, sizeof(Lanes));
  return value;
}

template <typename Lanes, typename Scalar>
inline void Store(Scalar* to, const Lanes& value) {
  std::memcpy(to, &value, sizeof(Lanes));
}

// c + a b and c - a b, in one rounding where the instruction set has that and in two elsewhere. No
// other product is contracted with a sum (-ffp-contract=off): which ones the compiler would take
// depends on what it inlines, so bits would change with the code around a kernel.
#if defined(__FMA__) || defined(__aarch64__)
inline double MultiplyAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float MultiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif
#if defined(__FMA__)
inline Lanes4 MultiplyAdd(Lanes4 a, Lanes4 b, Lanes4 c) { return _mm256_fmadd_pd(a, b, c); }
inline Lanes2 MultiplyAdd(Lanes2 a, Lanes2 b, Lanes2 c) { return _mm_fmadd_pd(a, b, c); }
inline FloatLanes8 MultiplyAdd(FloatLanes8 a, FloatLanes8 b, FloatLanes8 c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Lanes4 MultiplySubtract(Lanes4 a, Lanes4 b, Lanes4 c) { return _mm256_fnmadd_pd(a, b, c); }
inline FloatLanes8 MultiplySubtract(FloatLanes8 a, FloatLanes8 b, FloatLanes8 c) {
  return _mm256_fnmadd_ps(a, b, c);
}
#elif defined(__aarch64__)
inline Lanes2 MultiplyAdd(Lanes2 a, Lanes2 b, Lanes2 c) { return vfmaq_f64(c, a, b); }
inline FloatLanes4 MultiplyAdd(FloatLanes4 a, FloatLanes4 b, FloatLanes4 c) {
  return vfmaq_f32(c, a, b);
}
inline Lanes2 MultiplySubtract(Lanes2 a, Lanes2 b, Lanes2 c) { return vfmsq_f64(c, a, b); }
inline FloatLanes4 MultiplySubtract(FloatLanes4 a, FloatLanes4 b, FloatLanes4 c) {
  return vfmsq_f32(c, a, b);
}
inline Lanes4 MultiplyAdd(Lanes4 a, Lanes4 b, Lanes4 c) {
  const Lanes2 low =
      MultiplyAdd(__builtin_shufflevector(a, a, 0, 1), __builtin_shufflevector(b, b, 0, 1),
                  __builtin_shufflevector(c, c, 0, 1));
  const Lanes2 high =
      MultiplyAdd(__builtin_shufflevector(a, a, 2, 3), __builtin_shufflevector(b, b, 2, 3),
                  __builtin_shufflevector(c, c, 2, 3));
  return __builtin_shufflevector(low, high, 0, 1, 2, 3);
}
inline Lanes4 MultiplySubtract(Lanes4 a, Lanes4 b, Lanes4 c) { return MultiplyAdd(-a, b, c); }
#else
template <typename Value>
inline Value MultiplyAdd(Value a, Value b, Value c) {
  return a * b + c;
}
template <typename Value>
inline Value MultiplySubtract(Value a, Value b, Value c) {
  return c - a * b;
}
#endif
inline double MultiplySubtract(double a, double b, double c) { return MultiplyAdd(-a, b, c); }
inline float MultiplySubtract(float a, float b, float c) { return MultiplyAdd(-a, b, c); }

// The same for a vector times a number.
template <typename Lanes>
using ElementOf = std::remove_cvref_t<decltype(Lanes{}[0])>;
template <typename Lanes>
inline Lanes MultiplyAdd(Lanes a, ElementOf<Lanes> b, Lanes c) {
  return MultiplyAdd(a, b - Lanes{}, c);
}
template <typename Lanes>
inline Lanes MultiplySubtract(Lanes a, ElementOf<Lanes> b, Lanes c) {
  return MultiplySubtract(a, b - Lanes{}, c);
}

inline double Sqrt(double x) { return std::sqrt(x); }
inline Lanes4 Sqrt(Lanes4 x) {
  return Lanes4{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
}

inline double Abs(double x) { return std::abs(x); }
inline Lanes4 Abs(const Lanes4& x) { return x < 0.0 ? -x : x; }
inline Lanes2 Abs(const Lanes2& x) { return x < 0.0 ? -x : x; }

// Whether numbers are neither infinite nor NaN.
inline bool IsFinite(double x) { return std::isfinite(x); }
inline auto IsFinite(const Lanes4& x) { return Abs(x) <= std::numeric_limits<double>::max(); }

// Whether all of these hold, of numbers or in each lane.
template <typename Mask, typename... Masks>
inline Mask All(Mask first, Masks... others) {
  return static_cast<Mask>((first & ... & others));
}

// The sum of the lanes in an order that does not depend on the target.
inline double Sum(double x) { return x; }
inline double Sum(const Lanes4& x) { return (x[0] + x[1]) + (x[2] + x[3]); }

// Calls body(i, Lanes4) for i = begin, begin + 4, ... and body(i, double) for what remains.
template <typename Body>
inline void ForLanes(int begin, int end, Body&& body) {
  constexpr int kLanes = kNumLanes<double>;
  int i = begin;
  for (; i + kLanes <= end; i += kLanes) body(i, Lanes4{});
  for (; i < end; ++i) body(i, double{});
}

}  // namespace sap
