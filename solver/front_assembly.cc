#include "solver/front_assembly.h"

#include <algorithm>

namespace sap {

using RowRun = EliminationPlan::RowRun;
using MatrixBlock = EliminationPlan::MatrixBlock;

template <typename Scalar>
void AddMatrixBlocks(std::span<const MatrixBlock> blocks, const double* diagonal,
                     const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                     Scalar* front) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  for (const MatrixBlock& block : blocks) {
    const bool transposed = block.kind == MatrixBlock::Kind::kTransposed;
    const bool is_diagonal = block.kind == MatrixBlock::Kind::kDiagonal;
    const double* values = (is_diagonal ? diagonal : off_diagonal) + block.value_start;
    const int rows = transposed ? block.columns : block.rows;
    const int columns = transposed ? block.rows : block.columns;
    const ptrdiff_t row_stride = transposed ? 1 : block.columns;
    const ptrdiff_t column_stride = transposed ? block.columns : 1;
    for (int i = 0; i < rows; ++i) {
      Scalar* to = front + layout.RowStart(block.row + i) + block.column * kLanes;
      const double* from = values + i * row_stride;
      const int end = is_diagonal ? i + 1 : columns;
      for (int j = 0; j < end; ++j) {
        to[j * kLanes] += static_cast<Scalar>(scale * from[j * column_stride]);
      }
    }
  }
}

template <typename Scalar>
void AddChildToPivots(std::span<const RowRun> runs, const UpdateLayout& child,
                      const Scalar* child_update, const FrontLayout<Scalar>& layout, int begin,
                      int end, Scalar* front) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  for (size_t c = 0; c < runs.size() && runs[c].parent_row < std::min(end, layout.pivots()); ++c) {
    const int first = std::max(0, begin - runs[c].parent_row);
    const int last = std::min(runs[c].length, end - runs[c].parent_row);
    for (size_t r = c; r < runs.size(); ++r) {
      for (int j = first; j < last; ++j) {
        const Scalar* from =
            child_update + child.ColumnStart(runs[c].child_row + j) + runs[r].child_row;
        Scalar* to = front + (runs[c].parent_row + j) * kLanes;
        for (int i = r == c ? j : 0; i < runs[r].length; ++i) {
          to[layout.RowStart(runs[r].parent_row + i)] += from[i];
        }
      }
    }
  }
}

template <typename Scalar>
void AddChildToUpdate(std::span<const RowRun> runs, const UpdateLayout& child,
                      const Scalar* child_update, const FrontLayout<Scalar>& layout, int begin,
                      int end, Scalar* update) {
  const int pivots = layout.pivots();
  const UpdateLayout own(layout.updates());
  for (size_t c = 0; c < runs.size(); ++c) {
    const int column = runs[c].parent_row - pivots;
    const int first = std::max(0, begin - column);
    const int last = std::min(runs[c].length, end - column);
    if (column < 0 || first >= last) continue;
    for (int j = first; j < last; ++j) {
      const Scalar* from = child_update + child.ColumnStart(runs[c].child_row + j);
      Scalar* to = update + own.ColumnStart(column + j) - pivots;
      for (size_t r = c; r < runs.size(); ++r) {
        const Scalar* from_run = from + runs[r].child_row;
        Scalar* to_run = to + runs[r].parent_row;
        for (int i = r == c ? j : 0; i < runs[r].length; ++i) to_run[i] += from_run[i];
      }
    }
  }
}

#define SAP_INSTANTIATE(Scalar)                                                               \
  template void AddMatrixBlocks<Scalar>(std::span<const MatrixBlock>, const double*,          \
                                        const double*, double, const FrontLayout<Scalar>&,    \
                                        Scalar*);                                             \
  template void AddChildToPivots<Scalar>(std::span<const RowRun>, const UpdateLayout&,        \
                                         const Scalar*, const FrontLayout<Scalar>&, int, int, \
                                         Scalar*);                                            \
  template void AddChildToUpdate<Scalar>(std::span<const RowRun>, const UpdateLayout&,        \
                                         const Scalar*, const FrontLayout<Scalar>&, int, int, \
                                         Scalar*);
SAP_INSTANTIATE(double)
SAP_INSTANTIATE(float)
#undef SAP_INSTANTIATE

}  // namespace sap
