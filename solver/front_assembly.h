// What is added up in a front before it is factored: its blocks of H, and the updates of its
// children (extend-add). Lower triangle only.
#pragma once

#include <span>

#include "solver/elimination_plan.h"
#include "solver/front_layout.h"

namespace sap {

// front(row, column) += scale * H of the matrix blocks, which enter pivot columns.
template <typename Scalar>
void AddMatrixBlocks(std::span<const EliminationPlan::MatrixBlock> blocks, const double* diagonal,
                     const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                     Scalar* front);

// Adds those columns of a child's update that are pivot columns [begin, end) of the front.
template <typename Scalar>
void AddChildToPivots(std::span<const EliminationPlan::RowRun> runs, const UpdateLayout& child,
                      const Scalar* child_update, const FrontLayout<Scalar>& layout, int begin,
                      int end, Scalar* front);

// Adds those columns of a child's update that are columns [begin, end) of the front's own update.
template <typename Scalar>
void AddChildToUpdate(std::span<const EliminationPlan::RowRun> runs, const UpdateLayout& child,
                      const Scalar* child_update, const FrontLayout<Scalar>& layout, int begin,
                      int end, Scalar* update);

}  // namespace sap
