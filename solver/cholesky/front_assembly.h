// What is added up in a front before it is factored: its blocks of H, and the updates of its
// children (extend-add). Lower triangle only.
#pragma once

#include <cstddef>
#include <span>

#include "solver/cholesky/elimination_plan.h"
#include "solver/cholesky/front_layout.h"

namespace sap {

// Pivot columns [begin, end) of the front := 0, with their padding.
template <typename Scalar>
void ClearColumns(const FrontLayout<Scalar>& layout, int begin, int end, Scalar* front);

// front := scale * H in pivot columns [begin, end), where the matrix blocks have entries.
template <typename Scalar>
void CopyMatrixBlocks(std::span<const EliminationPlan::MatrixBlock> blocks, const double* diagonal,
                      const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                      int begin, int end, Scalar* front);

// Adds those columns of a child's update that are pivot columns [begin, end) of the front. The
// child's columns are `stride` apart.
template <typename Scalar>
void AddChildToPivots(std::span<const EliminationPlan::RowRun> runs, const Scalar* child_update,
                      ptrdiff_t stride, const FrontLayout<Scalar>& layout, int begin, int end,
                      Scalar* front);

// Adds those columns of a child's update that are columns [begin, end) of the front's own update.
template <typename Scalar>
void AddChildToUpdate(std::span<const EliminationPlan::RowRun> runs, const Scalar* child_update,
                      ptrdiff_t stride, const FrontLayout<Scalar>& layout, int begin, int end,
                      Scalar* update);

}  // namespace sap
