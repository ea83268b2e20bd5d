// Triangular solves with one factored front (dense_front.h):
//
//   forward:   x1 := L11^-1 x1,   x2 -= L21 x1        backward:  x1 := L11^-T (x1 - L21' x2)
//
// Vectors are padded with zeros to whole slivers. Slivers are read once each in ascending order,
// backward in descending order, because the factor streams from memory.
//
// `starts`, where it is given, says before which column each pivot sliver is zero
// (DenseFront::FactorProfile); the bits are the same without it.
#pragma once

#include "solver/cholesky/front_layout.h"

namespace sap {

// Each half of the solve has two parts: the pivots' rows, and the rows below, whose pieces are
// independent of each other and may be worked on by several threads. The result of a row or column
// does not depend on the pieces. x1 has pivot_slivers() slivers, x2 the remaining ones.
template <typename Scalar>
void ForwardSolvePivots(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1,
                        const int* starts = nullptr);

// Update slivers [sliver_begin, sliver_end), counted from the first of x2; after the pivots.
template <typename Scalar>
void ForwardSolveUpdates(const FrontLayout<Scalar>& layout, const Scalar* factor, const Scalar* x1,
                         int sliver_begin, int sliver_end, Scalar* x2);

// sums := L21' x2, lane by lane, for columns [column_begin, column_end): kLanes entries per column.
// Columns end with the slivers of x1: those of its padding have zeros.
template <typename Scalar>
void SumUpdates(const FrontLayout<Scalar>& layout, const Scalar* factor, const Scalar* x2,
                int column_begin, int column_end, Scalar* sums);

// After the sums of all columns, which serve as scratch.
template <typename Scalar>
void BackwardSolvePivots(const FrontLayout<Scalar>& layout, const Scalar* factor, Scalar* x1,
                         Scalar* sums, const int* starts = nullptr);

}  // namespace sap
