// Assembly of a front before it is factored: sums its blocks of H and the updates of its children
// (extend-add). Lower triangle only.
#pragma once

#include <cstddef>
#include <span>

#include "solver/cholesky/elimination_plan.h"
#include "solver/cholesky/front_layout.h"

namespace sap {

// Zeroes pivot columns [begin, end) of the front and their padding.
template <typename Scalar>
void ClearColumns(const FrontLayout<Scalar>& layout, int begin, int end, Scalar* front);

// front := scale H in pivot columns [begin, end), at the entries of the given blocks of H.
template <typename Scalar>
void CopyMatrixBlocks(std::span<const EliminationPlan::MatrixBlock> blocks, const double* diagonal,
                      const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                      int begin, int end, Scalar* front);

// Adds the columns of a child's update that are pivot columns [begin, end) of the front. Columns of
// the child's update are `stride` entries apart.
template <typename Scalar>
void AddChildToPivots(std::span<const EliminationPlan::RowRun> runs, const Scalar* child_update,
                      ptrdiff_t stride, const FrontLayout<Scalar>& layout, int begin, int end,
                      Scalar* front);

// Adds the columns of a child's update that are columns [begin, end) of the front's own update.
template <typename Scalar>
void AddChildToUpdate(std::span<const EliminationPlan::RowRun> runs, const Scalar* child_update,
                      ptrdiff_t stride, const FrontLayout<Scalar>& layout, int begin, int end,
                      Scalar* update);

}  // namespace sap
