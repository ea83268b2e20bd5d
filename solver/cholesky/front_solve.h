// Triangular solves with one factored front (dense_front.h):
//
//   forward:   x1 := L11^-1 x1,   x2 -= L21 x1        backward:  x1 := L11^-T (x1 - L21' x2)
//
// Vectors are padded with zeros to whole slivers. Slivers are read once each in ascending order,
// backward in descending order, because the factor streams from memory.
#pragma once

#include "solver/cholesky/front_layout.h"

namespace sap {

// x1 has pivot_slivers() slivers, x2 the remaining ones.
template <typename Scalar>
void ForwardSolve(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1, Scalar* x2);

// sums: scratch of kLanes entries per row of x1, padding included.
template <typename Scalar>
void BackwardSolve(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1,
                   const Scalar* x2, Scalar* sums);

}  // namespace sap
