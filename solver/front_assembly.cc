#include "solver/front_assembly.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace sap {
namespace {

using RowRun = EliminationPlan::RowRun;
using MatrixBlock = EliminationPlan::MatrixBlock;

// Calls body with a number of 1 to kMax as a constant.
template <int kMax, typename Body>
inline void WithLength(int number, Body&& body) {
  if constexpr (kMax > 1) {
    if (number < kMax) return WithLength<kMax - 1>(number, body);
  }
  body(std::integral_constant<int, kMax>());
}

// Calls body(i, length, start) for the pieces of local rows [row, row + count) that lie in one
// sliver: rows i .. i + length of these, whose entries in column 0 are from `start` on.
template <typename Scalar, typename Body>
inline void ForEachPiece(const FrontLayout<Scalar>& layout, int row, int count, Body&& body) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  for (int i = 0; i < count;) {
    const int in_zone = row + i < layout.pivots() ? row + i : row + i - layout.pivots();
    const int length = std::min(kLanes - in_zone % kLanes, count - i);
    const ptrdiff_t start = layout.RowStart(row + i);
    WithLength<kLanes>(length, [&](auto constant) { body(i, constant, start); });
    i += length;
  }
}

// to(row, column) := scale * from, for kLength rows of one sliver.
template <int kLength, typename Scalar>
inline void CopyPiece(const double* from, ptrdiff_t row_stride, ptrdiff_t column_stride,
                      double scale, int columns, Scalar* to) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  for (int j = 0; j < columns; ++j) {
#pragma GCC unroll 8
    for (int i = 0; i < kLength; ++i) {
      to[j * kLanes + i] = static_cast<Scalar>(scale * from[i * row_stride + j * column_stride]);
    }
  }
}

// to(row, column) += from, for kLength rows of one sliver.
template <int kLength, typename Scalar>
inline void AddPiece(const Scalar* from, ptrdiff_t stride, int columns, Scalar* to) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  for (int j = 0; j < columns; ++j) {
    Scalar sum[kLength];
#pragma GCC unroll 8
    for (int i = 0; i < kLength; ++i) sum[i] = to[i] + from[i];
#pragma GCC unroll 8
    for (int i = 0; i < kLength; ++i) to[i] = sum[i];
    to += kLanes;
    from += stride;
  }
}

}  // namespace

template <typename Scalar>
void CopyMatrixBlocks(std::span<const MatrixBlock> blocks, const double* diagonal,
                      const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                      Scalar* front) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  for (const MatrixBlock& block : blocks) {
    Scalar* to = front + block.column * kLanes;
    switch (block.kind) {
      case MatrixBlock::Kind::kDiagonal:
        for (int i = 0; i < block.rows; ++i) {
          CopyPiece<1>(diagonal + block.value_start + i * block.columns, 0, 1, scale, i + 1,
                       to + layout.PivotRowStart(block.row + i));
        }
        break;
      case MatrixBlock::Kind::kAsStored:
        ForEachPiece(layout, block.row, block.rows, [&](int i, auto length, ptrdiff_t start) {
          CopyPiece<length>(off_diagonal + block.value_start + i * block.columns, block.columns, 1,
                            scale, block.columns, to + start);
        });
        break;
      case MatrixBlock::Kind::kTransposed:
        ForEachPiece(layout, block.row, block.columns, [&](int i, auto length, ptrdiff_t start) {
          CopyPiece<length>(off_diagonal + block.value_start + i, 1, block.columns, scale,
                            block.rows, to + start);
        });
        break;
    }
  }
}

template <typename Scalar>
void AddChildToPivots(std::span<const RowRun> runs, const Scalar* child_update, ptrdiff_t stride,
                      const FrontLayout<Scalar>& layout, int begin, int end, Scalar* front) {
  constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  const int columns_end = std::min(end, layout.pivots());
  for (size_t c = 0; c < runs.size() && runs[c].parent_row < columns_end; ++c) {
    // Columns first .. last of the run.
    const int first = std::max(0, begin - runs[c].parent_row);
    const int last = std::min(runs[c].length, columns_end - runs[c].parent_row);
    if (first >= last) continue;
    const Scalar* from = child_update + (runs[c].child_row + first) * stride;
    Scalar* to = front + (runs[c].parent_row + first) * kLanes;
    // On the diagonal row by row, each up to its diagonal.
    for (int i = first; i < runs[c].length; ++i) {
      AddPiece<1>(from + runs[c].child_row + i, stride, std::min(i + 1, last) - first,
                  to + layout.PivotRowStart(runs[c].parent_row + i));
    }
    for (size_t r = c + 1; r < runs.size(); ++r) {
      ForEachPiece(
          layout, runs[r].parent_row, runs[r].length, [&](int i, auto length, ptrdiff_t start) {
            AddPiece<length>(from + runs[r].child_row + i, stride, last - first, to + start);
          });
    }
  }
}

template <typename Scalar>
void AddChildToUpdate(std::span<const RowRun> runs, const Scalar* child_update, ptrdiff_t stride,
                      const FrontLayout<Scalar>& layout, int begin, int end, Scalar* update) {
  const int pivots = layout.pivots();
  const ptrdiff_t own_stride = UpdateStride(layout.updates());
  for (size_t c = 0; c < runs.size(); ++c) {
    const int column = runs[c].parent_row - pivots;
    const int first = std::max(0, begin - column);
    const int last = std::min(runs[c].length, end - column);
    if (column < 0 || first >= last) continue;
    for (int j = first; j < last; ++j) {
      const Scalar* from = child_update + (runs[c].child_row + j) * stride;
      Scalar* to = update + (column + j) * own_stride - pivots;
      for (size_t r = c; r < runs.size(); ++r) {
        const Scalar* from_run = from + runs[r].child_row;
        Scalar* to_run = to + runs[r].parent_row;
        for (int i = r == c ? j : 0; i < runs[r].length; ++i) to_run[i] += from_run[i];
      }
    }
  }
}

#define SAP_INSTANTIATE(Scalar)                                                             \
  template void CopyMatrixBlocks<Scalar>(std::span<const MatrixBlock>, const double*,       \
                                         const double*, double, const FrontLayout<Scalar>&, \
                                         Scalar*);                                          \
  template void AddChildToPivots<Scalar>(std::span<const RowRun>, const Scalar*, ptrdiff_t, \
                                         const FrontLayout<Scalar>&, int, int, Scalar*);    \
  template void AddChildToUpdate<Scalar>(std::span<const RowRun>, const Scalar*, ptrdiff_t, \
                                         const FrontLayout<Scalar>&, int, int, Scalar*);
SAP_INSTANTIATE(double)
SAP_INSTANTIATE(float)
#undef SAP_INSTANTIATE

}  // namespace sap
