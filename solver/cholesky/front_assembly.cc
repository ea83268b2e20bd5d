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

// Rows or columns [begin, end) of a block or a run that are in a tile.
struct Part {
  int begin;
  int end;

  bool empty() const { return begin >= end; }
};

// The part of `length` rows or columns from `start` on that is in [begin, end).
Part Within(int start, int length, int begin, int end) {
  return {std::max(0, begin - start), std::min(length, end - start)};
}

// Copies a part of the lower triangle of a diagonal block.
template <typename Scalar>
inline void CopyDiagonalBlock(const double* from, int size, double scale, int row, Part rows,
                              Part columns, const FrontLayout<Scalar>& layout, Scalar* to) {
  constexpr int kLanes = kNumLanes<Scalar>;
  for (int i = std::max(rows.begin, columns.begin); i < rows.end; ++i) {
    Scalar* to_row = to + layout.PivotRowStart(row + i);
    const int end = std::min(i + 1, columns.end);
    for (int j = columns.begin; j < end; ++j) {
      to_row[j * kLanes] = static_cast<Scalar>(scale * from[i * size + j]);
    }
  }
}

// The runs, in ascending order of parent rows, that have a row in [begin, end). The first and the
// last run are tested before a search: most fronts are one tile.
inline Part RunsWithin(std::span<const RowRun> runs, int begin, int end) {
  const auto ends_before = [begin](const RowRun& run) {
    return run.parent_row + run.length <= begin;
  };
  const auto begins_before = [end](const RowRun& run) { return run.parent_row < end; };
  auto first = runs.begin();
  auto last = runs.end();
  if (first != last && ends_before(runs.front())) {
    first = std::partition_point(first, last, ends_before);
  }
  if (first != last && !begins_before(runs.back())) {
    last = std::partition_point(first, last, begins_before);
  }
  return {static_cast<int>(first - runs.begin()), static_cast<int>(last - runs.begin())};
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
void ClearColumns(const FrontLayout<Scalar>& layout, int column_begin, int column_end,
                  int sliver_begin, int sliver_end, Scalar* front) {
  constexpr int kLanes = kNumLanes<Scalar>;
  if (column_begin == 0 && column_end == layout.pivots()) {
    std::fill(front + layout.SliverStart(sliver_begin), front + layout.SliverStart(sliver_end),
              Scalar{0});
    return;
  }
  for (int s = std::max(sliver_begin, column_begin / kLanes); s < sliver_end; ++s) {
    Scalar* sliver = front + layout.SliverStart(s);
    const bool pivot_rows = s < layout.pivot_slivers();
    const int stored = pivot_rows ? (s + 1) * kLanes : layout.pivots();
    const int end = column_end == layout.pivots() ? stored : std::min(column_end, stored);
    std::fill(sliver + column_begin * kLanes, sliver + end * kLanes, Scalar{0});
  }
}

template <typename Scalar>
void CopyMatrixBlocks(std::span<const MatrixBlock> blocks, const double* diagonal,
                      const double* off_diagonal, double scale, const FrontLayout<Scalar>& layout,
                      const FrontTile& tile, Scalar* front) {
  constexpr int kLanes = kNumLanes<Scalar>;
  constexpr size_t kPrefetchAhead = 4;
  const auto values = [&](const MatrixBlock& block) {
    return (block.kind == MatrixBlock::Kind::kDiagonal ? diagonal : off_diagonal) +
           block.value_start;
  };
  for (size_t b = 0; b < blocks.size(); ++b) {
    const MatrixBlock& block = blocks[b];
    const bool transposed = block.kind == MatrixBlock::Kind::kTransposed;
    const Part rows =
        Within(block.row, transposed ? block.columns : block.rows, tile.row_begin, tile.row_end);
    const Part columns = Within(block.column, transposed ? block.rows : block.columns,
                                tile.column_begin, tile.column_end);
    if (rows.empty() || columns.empty()) continue;
    if (b + kPrefetchAhead < blocks.size()) {
      const double* ahead = values(blocks[b + kPrefetchAhead]);
      for (int line = 0; line < 5; ++line) __builtin_prefetch(ahead + 8 * line);
    }
    Scalar* to = front + block.column * kLanes;
    if (block.kind == MatrixBlock::Kind::kDiagonal) {
      CopyDiagonalBlock(values(block), block.rows, scale, block.row, rows, columns, layout, to);
      continue;
    }
    const ptrdiff_t row_stride = transposed ? 1 : block.columns;
    const ptrdiff_t column_stride = transposed ? block.columns : 1;
    const double* from = values(block) + rows.begin * row_stride + columns.begin * column_stride;
    to += columns.begin * kLanes;
    const int row = block.row + rows.begin;
    const auto copy = [&](auto&& row_start) {
      CopyRows(from, row_stride, column_stride, scale, rows.end - rows.begin,
               columns.end - columns.begin, to, row_start);
    };
    if (row < layout.pivots()) {
      copy([&](int i) { return layout.PivotRowStart(row + i); });
    } else {
      copy([&](int i) { return layout.UpdateRowStart(row - layout.pivots() + i); });
    }
  }
}

template <typename Scalar>
void AddChildToPivots(std::span<const RowRun> runs, const Scalar* child_update, ptrdiff_t stride,
                      const FrontLayout<Scalar>& layout, const FrontTile& tile, Scalar* front) {
  constexpr int kLanes = kNumLanes<Scalar>;
  const Part in_rows = RunsWithin(runs, tile.row_begin, tile.row_end);
  const Part in_columns =
      RunsWithin(runs, tile.column_begin, std::min(tile.column_end, layout.pivots()));
  for (int c = in_columns.begin; c < std::min(in_columns.end, in_rows.end); ++c) {
    const RowRun& run = runs[c];
    const Part columns = Within(run.parent_row, run.length, tile.column_begin, tile.column_end);
    const Scalar* from = child_update + (run.child_row + columns.begin) * stride;
    Scalar* to = front + (run.parent_row + columns.begin) * kLanes;
    // On the diagonal one row at a time, up to its diagonal entry.
    const Part diagonal = Within(run.parent_row, run.length, tile.row_begin, tile.row_end);
    for (int i = std::max(columns.begin, diagonal.begin); i < diagonal.end; ++i) {
      AddPiece<1>(from + run.child_row + i, stride, std::min(i + 1, columns.end) - columns.begin,
                  to + layout.PivotRowStart(run.parent_row + i));
    }
    for (int r = std::max(c + 1, in_rows.begin); r < in_rows.end; ++r) {
      const Part rows = Within(runs[r].parent_row, runs[r].length, tile.row_begin, tile.row_end);
      const Scalar* from_rows = from + runs[r].child_row + rows.begin;
      ForEachSliver(layout, runs[r].parent_row + rows.begin, rows.end - rows.begin,
                    [&](int i, auto length, ptrdiff_t start) {
                      AddPiece<length>(from_rows + i, stride, columns.end - columns.begin,
                                       to + start);
                    });
    }
  }
}

template <typename Scalar>
void AddChildToUpdate(std::span<const RowRun> runs, const Scalar* child_update, ptrdiff_t stride,
                      const FrontLayout<Scalar>& layout, const FrontTile& tile, Scalar* update) {
  const int pivots = layout.pivots();
  const ptrdiff_t own_stride = UpdateStride(layout.updates());
  const Part in_rows = RunsWithin(runs, tile.row_begin, tile.row_end);
  const Part in_columns = RunsWithin(runs, tile.column_begin, tile.column_end);
  for (int c = in_columns.begin; c < std::min(in_columns.end, in_rows.end); ++c) {
    const RowRun& run = runs[c];
    const Part columns = Within(run.parent_row, run.length, tile.column_begin, tile.column_end);
    const Part diagonal = Within(run.parent_row, run.length, tile.row_begin, tile.row_end);
    for (int j = columns.begin; j < columns.end; ++j) {
      const Scalar* from = child_update + (run.child_row + j) * stride;
      Scalar* to = update + (run.parent_row - pivots + j) * own_stride - pivots;
      // On the diagonal from the diagonal entry down.
      const int first = std::max(j, diagonal.begin);
      AddContiguous(from + run.child_row + first, diagonal.end - first,
                    to + run.parent_row + first);
      for (int r = std::max(c + 1, in_rows.begin); r < in_rows.end; ++r) {
        const Part rows = Within(runs[r].parent_row, runs[r].length, tile.row_begin, tile.row_end);
        const Scalar* from_rows = from + runs[r].child_row + rows.begin;
        __builtin_prefetch(from_rows + 2 * stride);
        AddContiguous(from_rows, rows.end - rows.begin, to + runs[r].parent_row + rows.begin);
      }
    }
  }
}

template void ClearColumns<double>(const FrontLayout<double>&, int, int, int, int, double*);
template void CopyMatrixBlocks<double>(std::span<const MatrixBlock>, const double*, const double*,
                                       double, const FrontLayout<double>&, const FrontTile&,
                                       double*);
template void AddChildToPivots<double>(std::span<const RowRun>, const double*, ptrdiff_t,
                                       const FrontLayout<double>&, const FrontTile&, double*);
template void AddChildToUpdate<double>(std::span<const RowRun>, const double*, ptrdiff_t,
                                       const FrontLayout<double>&, const FrontTile&, double*);
template void ClearColumns<float>(const FrontLayout<float>&, int, int, int, int, float*);
template void CopyMatrixBlocks<float>(std::span<const MatrixBlock>, const double*, const double*,
                                      double, const FrontLayout<float>&, const FrontTile&, float*);
template void AddChildToPivots<float>(std::span<const RowRun>, const float*, ptrdiff_t,
                                      const FrontLayout<float>&, const FrontTile&, float*);
template void AddChildToUpdate<float>(std::span<const RowRun>, const float*, ptrdiff_t,
                                      const FrontLayout<float>&, const FrontTile&, float*);

}  // namespace sap
