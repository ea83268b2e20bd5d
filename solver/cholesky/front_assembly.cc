#include "solver/cholesky/front_assembly.h"

#include <algorithm>
#include <utility>

#include "solver/cholesky/front_kernels.h"

namespace sap {
namespace {

using RowRun = EliminationPlan::RowRun;
using MatrixBlock = EliminationPlan::MatrixBlock;

// Divides local rows [row, row + count) by the slivers that hold them: calls body(i, length, start)
// for the i-th row and the `length` - 1 after it, whose entries in column 0 begin at `start`.
template <typename Scalar, typename Body>
inline void ForEachSliver(const FrontLayout<Scalar>& layout, int row, int count, Body&& body) {
  constexpr int kLanes = kNumLanes<Scalar>;
  for (int i = 0; i < count;) {
    const int in_zone = row + i < layout.pivots() ? row + i : row + i - layout.pivots();
    const int length = std::min(kLanes - in_zone % kLanes, count - i);
    const ptrdiff_t start = layout.RowStart(row + i);
    WithConstant<kLanes>(length, [&](auto constant) { body(i, constant, start); });
    i += length;
  }
}

// Copies row i of a block of H to `to` + row_start(i). Six columns, the common case, are unrolled.
template <typename Scalar, typename RowStart>
inline void CopyRows(const double* from, ptrdiff_t row_stride, ptrdiff_t column_stride,
                     double scale, int rows, int columns, Scalar* to, RowStart&& row_start) {
  constexpr int kLanes = kNumLanes<Scalar>;
  for (int i = 0; i < rows; ++i) {
    Scalar* to_row = to + row_start(i);
    const double* from_row = from + i * row_stride;
    if (columns == 6) {
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) {
        to_row[j * kLanes] = static_cast<Scalar>(scale * from_row[j * column_stride]);
      }
    } else {
      for (int j = 0; j < columns; ++j) {
        to_row[j * kLanes] = static_cast<Scalar>(scale * from_row[j * column_stride]);
      }
    }
  }
}

// Copies columns first .. last - 1 of the lower triangle of a diagonal block.
template <typename Scalar>
inline void CopyDiagonalBlock(const double* from, int size, double scale, int row, int first,
                              int last, const FrontLayout<Scalar>& layout, Scalar* to) {
  constexpr int kLanes = kNumLanes<Scalar>;
  for (int i = first; i < size; ++i) {
    Scalar* to_row = to + layout.PivotRowStart(row + i);
    const int end = std::min(i + 1, last);
    for (int j = first; j < end; ++j) {
      to_row[j * kLanes] = static_cast<Scalar>(scale * from[i * size + j]);
    }
  }
}

// to(row, column) += from, for kLength rows of one sliver.
template <int kLength, typename Scalar>
inline void AddPiece(const Scalar* from, ptrdiff_t stride, int columns, Scalar* to) {
  constexpr int kLanes = kNumLanes<Scalar>;
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

// to += from. Most runs are short: a few vectors and a remainder.
template <typename Scalar>
inline void AddContiguous(const Scalar* from, int count, Scalar* to) {
  using Vector = FullLanes<Scalar>;
  constexpr int kLanes = kNumLanes<Scalar>;
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Store(to + i, Load<Vector>(to + i) + Load<Vector>(from + i));
  }
  if (i + kLanes / 2 <= count) {
    using Half = HalfLanes<Scalar>;
    Store(to + i, Load<Half>(to + i) + Load<Half>(from + i));
    i += kLanes / 2;
  }
  for (; i < count; ++i) to[i] += from[i];
}

}  // namespace

template <typename Scalar>
void ClearColumns(const FrontLayout<Scalar>& layout, int begin, int end, Scalar* front) {
  constexpr int kLanes = kNumLanes<Scalar>;
  if (begin == 0 && end == layout.pivots()) {
    std::fill(front, front + layout.entries(), Scalar{0});
    return;
  }
  for (int s = begin / kLanes; s < layout.slivers(); ++s) {
    Scalar* sliver = front + layout.SliverStart(s);
    const bool pivot_rows = s < layout.pivot_slivers();
    const int stored = pivot_rows ? (s + 1) * kLanes : layout.pivots();
    std::fill(sliver + begin * kLanes,
              sliver + (end == layout.pivots() ? stored : std::min(end, stored)) * kLanes,
              Scalar{0});
  }
}

template <typename Scalar>
void CopyMatrixBlocks(std::span<const MatrixBlock> blocks, const double* diagonal,
                      const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                      int begin, int end, Scalar* front) {
  constexpr int kLanes = kNumLanes<Scalar>;
  constexpr size_t kPrefetchAhead = 4;
  const auto values = [&](const MatrixBlock& block) {
    return (block.kind == MatrixBlock::Kind::kDiagonal ? diagonal : off_diagonal) +
           block.value_start;
  };
  for (size_t b = 0; b < blocks.size(); ++b) {
    const MatrixBlock& block = blocks[b];
    const bool transposed = block.kind == MatrixBlock::Kind::kTransposed;
    const int rows = transposed ? block.columns : block.rows;
    const int first = std::max(0, begin - block.column);
    const int last = std::min(transposed ? block.rows : block.columns, end - block.column);
    if (first >= last) continue;
    if (b + kPrefetchAhead < blocks.size()) {
      const double* ahead = values(blocks[b + kPrefetchAhead]);
      for (int line = 0; line < 5; ++line) __builtin_prefetch(ahead + 8 * line);
    }
    Scalar* to = front + block.column * kLanes;
    if (block.kind == MatrixBlock::Kind::kDiagonal) {
      CopyDiagonalBlock(values(block), block.rows, scale, block.row, first, last, layout, to);
      continue;
    }
    const ptrdiff_t row_stride = transposed ? 1 : block.columns;
    const ptrdiff_t column_stride = transposed ? block.columns : 1;
    const double* from = values(block) + first * column_stride;
    to += first * kLanes;
    if (block.row < layout.pivots()) {
      CopyRows(from, row_stride, column_stride, scale, rows, last - first, to,
               [&](int i) { return layout.PivotRowStart(block.row + i); });
    } else {
      const int row = block.row - layout.pivots();
      CopyRows(from, row_stride, column_stride, scale, rows, last - first, to,
               [&](int i) { return layout.UpdateRowStart(row + i); });
    }
  }
}

template <typename Scalar>
void AddChildToPivots(std::span<const RowRun> runs, const Scalar* child_update, ptrdiff_t stride,
                      const FrontLayout<Scalar>& layout, int begin, int end, Scalar* front) {
  constexpr int kLanes = kNumLanes<Scalar>;
  const int columns_end = std::min(end, layout.pivots());
  for (size_t c = 0; c < runs.size() && runs[c].parent_row < columns_end; ++c) {
    // Columns first .. last of the run.
    const int first = std::max(0, begin - runs[c].parent_row);
    const int last = std::min(runs[c].length, columns_end - runs[c].parent_row);
    if (first >= last) continue;
    const Scalar* from = child_update + (runs[c].child_row + first) * stride;
    Scalar* to = front + (runs[c].parent_row + first) * kLanes;
    // On the diagonal one row at a time, up to its diagonal entry.
    for (int i = first; i < runs[c].length; ++i) {
      AddPiece<1>(from + runs[c].child_row + i, stride, std::min(i + 1, last) - first,
                  to + layout.PivotRowStart(runs[c].parent_row + i));
    }
    for (size_t r = c + 1; r < runs.size(); ++r) {
      ForEachSliver(
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
      // On the diagonal from the diagonal entry down.
      AddContiguous(from + runs[c].child_row + j, runs[c].length - j, to + runs[c].parent_row + j);
      for (size_t r = c + 1; r < runs.size(); ++r) {
        __builtin_prefetch(from + runs[r].child_row + 2 * stride);
        AddContiguous(from + runs[r].child_row, runs[r].length, to + runs[r].parent_row);
      }
    }
  }
}

template void ClearColumns<double>(const FrontLayout<double>&, int, int, double*);
template void CopyMatrixBlocks<double>(std::span<const MatrixBlock>, const double*, const double*,
                                       double, const FrontLayout<double>&, int, int, double*);
template void AddChildToPivots<double>(std::span<const RowRun>, const double*, ptrdiff_t,
                                       const FrontLayout<double>&, int, int, double*);
template void AddChildToUpdate<double>(std::span<const RowRun>, const double*, ptrdiff_t,
                                       const FrontLayout<double>&, int, int, double*);
template void ClearColumns<float>(const FrontLayout<float>&, int, int, float*);
template void CopyMatrixBlocks<float>(std::span<const MatrixBlock>, const double*, const double*,
                                      double, const FrontLayout<float>&, int, int, float*);
template void AddChildToPivots<float>(std::span<const RowRun>, const float*, ptrdiff_t,
                                      const FrontLayout<float>&, int, int, float*);
template void AddChildToUpdate<float>(std::span<const RowRun>, const float*, ptrdiff_t,
                                      const FrontLayout<float>&, int, int, float*);

}  // namespace sap
