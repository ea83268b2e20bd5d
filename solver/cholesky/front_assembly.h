// Assembly of a front before it is factored: sums its blocks of H and the updates of its children
// (extend-add). Lower triangle only.
#pragma once

#include <cstddef>
#include <span>

#include "solver/cholesky/elimination_plan.h"
#include "solver/cholesky/front_layout.h"

namespace sap {

// The unit of assembly: local rows and columns of a front.
struct FrontTile {
  int column_begin;
  int column_end;
  int row_begin;
  int row_end;
};

// Zeroes pivot columns [column_begin, column_end) of slivers [sliver_begin, sliver_end), and their
// padding.
template <typename Scalar>
void ClearColumns(const FrontLayout<Scalar>& layout, int column_begin, int column_end,
                  int sliver_begin, int sliver_end, Scalar* front);

// front := scale H in a tile of the pivot columns, at the entries of the given blocks of H.
template <typename Scalar>
void CopyMatrixBlocks(std::span<const EliminationPlan::MatrixBlock> blocks, const double* diagonal,
                      const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                      const FrontTile& tile, Scalar* front);

// Adds the entries of a child's update that are in a tile of the front's pivot columns. Columns of
// the child's update are `stride` entries apart.
template <typename Scalar>
void AddChildToPivots(std::span<const EliminationPlan::RowRun> runs, const Scalar* child_update,
                      ptrdiff_t stride, const FrontLayout<Scalar>& layout, const FrontTile& tile,
                      Scalar* front);

// Adds the entries of a child's update that are in a tile of the front's own update. Rows and
// columns of the tile are local ones as well, from layout.pivots() on.
template <typename Scalar>
void AddChildToUpdate(std::span<const EliminationPlan::RowRun> runs, const Scalar* child_update,
                      ptrdiff_t stride, const FrontLayout<Scalar>& layout, const FrontTile& tile,
                      Scalar* update);

}  // namespace sap
