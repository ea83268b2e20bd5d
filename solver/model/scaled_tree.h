// Matrices of a tree in the unit of mass of its island.
#pragma once

#include "solver/parallel/simd.h"

namespace sap {

// A, its factor and D = diag(A)^-1/2 with the mass unit at 1, of one tree or of one in each lane.
// May be in place. False if something is out of the range of doubles then.
template <typename Value, typename Size>
auto ScaleTree(const Value* A, const Value* factor, Size n, Value mass_unit, Value* scaled_A,
               Value* scaled_factor, Value* D) {
  const Value per_unit = 1.0 / mass_unit;  // a power of two
  for (int i = 0; i < n * n; ++i) scaled_A[i] = A[i] * per_unit;
  for (int i = 0; i < n * n; ++i) scaled_factor[i] = factor[i];
  for (int i = 0; i < n; ++i) scaled_factor[i * n + i] *= mass_unit;
  for (int i = 0; i < n; ++i) D[i] = scaled_A[i * n + i];
  for (int i = 0; i < n; ++i) D[i] = 1.0 / Sqrt(D[i]);  // in vectors
  Value sum{};  // infinite or not a number if any of them is
  for (int i = 0; i < n; ++i) sum += Abs(D[i]) + Abs(scaled_factor[i * n + i]);
  return IsFinite(sum);
}

}  // namespace sap
