#include "solver/cholesky/dense_front.h"

#include <algorithm>

#include "solver/cholesky/front_kernels.h"

namespace sap {
namespace {

template <typename Body>
inline auto WithSlivers(int number, Body&& body) {
  return WithConstant<kTileSlivers>(number, body);
}

template <typename Body>
inline auto WithColumns(int number, Body&& body) {
  return WithConstant<kTileColumns>(number, body);
}

}  // namespace

template <typename Scalar>
int DenseFront<Scalar>::PanelColumnsEnd(int panel) const {
  return std::min((panel + 1) * kPanelColumns, layout_.pivots());
}

template <typename Scalar>
int DenseFront<Scalar>::PanelEnd(int panel) const {
  return (PanelColumnsEnd(panel) + kLanes - 1) / kLanes;
}

template <typename Scalar>
template <int kSlivers>
typename DenseFront<Scalar>::template Slivers<kSlivers> DenseFront<Scalar>::SliversFrom(int s) {
  Slivers<kSlivers> slivers;
  for (int i = 0; i < kSlivers; ++i) slivers.number[i] = s + i;
  return slivers;
}

// Tile of some slivers and columns column .. column + kColumns - 1: subtracts the products of
// columns [k_begin, k_end) and, if `solve`, divides by the factored pivot rows of its columns.
template <typename Scalar>
template <int kSlivers, int kColumns>
void DenseFront<Scalar>::UpdateTile(const Slivers<kSlivers>& slivers, int column, int k_begin,
                                    int k_end, bool solve) {
  Scalar* entries[kSlivers];
  const Scalar* rows[kSlivers];
  for (int i = 0; i < kSlivers; ++i) {
    Scalar* const sliver = Sliver(slivers.number[i]);
    rows[i] = sliver + k_begin * kLanes;
    entries[i] = sliver + column * kLanes;
  }
  const Scalar* operand = Operand(column);
  Tile<Scalar, kSlivers, kColumns> tile;
  tile.Load(entries, kLanes);
  tile.SubtractProduct(rows, operand + k_begin * kLanes, k_end - k_begin);
  if (solve) tile.SolveLower(operand + column * kLanes);
  tile.Store(entries, kLanes);
}

// The same for a tile whose first sliver holds the pivot rows of its columns, which are factored
// here. False at a pivot that is not positive and finite.
template <typename Scalar>
template <int kSlivers, int kColumns>
bool DenseFront<Scalar>::FactorDiagonalTile(const Slivers<kSlivers>& slivers, int column,
                                            int k_begin) {
  UpdateTile<kSlivers, kColumns>(slivers, column, k_begin, column, false);
  Scalar* pivot_rows = factor_ + layout_.PivotRowStart(column) + column * kLanes;
  Scalar lower[kColumns * kLanes];
  for (int c = 0; c < kColumns; ++c) {
    for (int i = c; i < kColumns; ++i) lower[c * kLanes + i] = pivot_rows[c * kLanes + i];
  }
  if (!FactorLower<Scalar, kColumns, kLanes>(lower)) return false;
  Scalar* entries[kSlivers];
  for (int i = 0; i < kSlivers; ++i) entries[i] = Sliver(slivers.number[i]) + column * kLanes;
  Tile<Scalar, kSlivers, kColumns> tile;
  tile.Load(entries, kLanes);
  tile.SolveLower(lower);
  tile.Store(entries, kLanes);
  for (int c = 0; c < kColumns; ++c) {
    for (int i = c; i < kColumns; ++i) pivot_rows[c * kLanes + i] = lower[c * kLanes + i];
  }
  return true;
}

template <typename Scalar>
void DenseFront<Scalar>::UpdatePanel(int panel, int begin, int end, int from, int to) {
  const int first_column = panel * kPanelColumns;
  const int columns_end = PanelColumnsEnd(panel);
  const int products_end = to * kPanelColumns;
  for (int s = begin; s < end; s += kTileSlivers) {
    const int s_end = std::min(s + kTileSlivers, end);
    for (int k = from * kPanelColumns; k < products_end; k += kDepth) {
      const int k_end = std::min(k + kDepth, products_end);
      for (int column = first_column; column < std::min(columns_end, s_end * kLanes);
           column += kTileColumns) {
        const int first = std::max(s, column / kLanes);
        WithColumns(columns_end - column, [&](auto columns) {
          WithSlivers(s_end - first, [&](auto slivers) {
            UpdateTile<slivers, columns>(SliversFrom<slivers>(first), column, k, k_end, false);
          });
        });
      }
    }
  }
}

template <typename Scalar>
bool DenseFront<Scalar>::FactorPanel(int panel) {
  const int first_column = panel * kPanelColumns;
  const int columns_end = PanelColumnsEnd(panel);
  const int slivers_end = PanelEnd(panel);
  for (int column = first_column; column < columns_end; column += kTileColumns) {
    const bool positive = WithColumns(columns_end - column, [&](auto columns) {
      int s = column / kLanes;
      const int first = std::min(kTileSlivers, slivers_end - s);
      const bool ok = WithSlivers(first, [&](auto slivers) {
        return FactorDiagonalTile<slivers, columns>(SliversFrom<slivers>(s), column, first_column);
      });
      if (!ok) return false;
      for (s += first; s < slivers_end; s += kTileSlivers) {
        WithSlivers(std::min(kTileSlivers, slivers_end - s), [&](auto slivers) {
          UpdateTile<slivers, columns>(SliversFrom<slivers>(s), column, first_column, column, true);
        });
      }
      return true;
    });
    if (!positive) return false;
  }
  return true;
}

template <typename Scalar>
template <int kSlivers>
void DenseFront<Scalar>::FactorSliversBelow(int panel, int s, int from) {
  const auto slivers = SliversFrom<kSlivers>(s);
  const int begin = panel * kPanelColumns;
  const int end = PanelColumnsEnd(panel);
  const int full_end = begin + (end - begin) / kTileColumns * kTileColumns;
  int k = from * kPanelColumns;
  for (; k + kDepth <= begin; k += kDepth) {
    int column = begin;
    for (; column < full_end; column += kTileColumns) {
      UpdateTile<kSlivers, kTileColumns>(slivers, column, k, k + kDepth, false);
    }
    if (column < end) {
      WithColumns(end - column, [&](auto columns) {
        UpdateTile<kSlivers, columns>(slivers, column, k, k + kDepth, false);
      });
    }
  }
  int column = begin;
  for (; column < full_end; column += kTileColumns) {
    UpdateTile<kSlivers, kTileColumns>(slivers, column, k, column, true);
  }
  if (column < end) {
    WithColumns(end - column, [&](auto columns) {
      UpdateTile<kSlivers, columns>(slivers, column, k, column, true);
    });
  }
}

template <typename Scalar>
void DenseFront<Scalar>::FactorBelowPanel(int panel, int begin, int end, int from) {
  for (int s = begin; s < end; s += kTileSlivers) {
    WithSlivers(std::min(kTileSlivers, end - s),
                [&](auto slivers) { FactorSliversBelow<slivers>(panel, s, from); });
  }
}

template <typename Scalar>
DenseStatus DenseFront<Scalar>::FactorPivots(const StopToken& stop) {
  for (int panel = 0; panel < NumPanels(layout_.pivots()); ++panel) {
    if (stop.Requested()) return DenseStatus::kStopped;
    const int end = PanelEnd(panel);
    UpdatePanel(panel, PanelBegin(panel), end, 0, panel);
    if (!FactorPanel(panel)) return DenseStatus::kNotPositiveDefinite;
    FactorBelowPanel(panel, end, layout_.slivers());
  }
  return DenseStatus::kOk;
}

// Columns column .. column + kColumns - 1. The slivers that do not reach them are left out.
template <typename Scalar>
template <int kColumns>
bool DenseFront<Scalar>::FactorProfileColumns(const int* starts, int column) {
  const int first = column / kLanes;
  const int slivers_end = layout_.pivot_slivers();
  int next = first;
  for (bool diagonal = true; next < slivers_end; diagonal = false) {
    Slivers<kTileSlivers> tile;
    int count = 0;
    int start = column;  // of the first of them
    for (; next < slivers_end && count < kTileSlivers; ++next) {
      if (starts[next] > column) continue;
      tile.number[count++] = next;
      start = std::min(start, starts[next]);
    }
    if (count == 0) return true;
    const bool positive = WithSlivers(count, [&](auto slivers) {
      Slivers<slivers> of_tile;
      std::copy_n(tile.number, static_cast<int>(slivers), of_tile.number);
      const int k_begin = std::max(start, starts[first]);
      if (diagonal) return FactorDiagonalTile<slivers, kColumns>(of_tile, column, k_begin);
      UpdateTile<slivers, kColumns>(of_tile, column, k_begin, column, true);
      return true;
    });
    if (!positive) return false;
  }
  return true;
}

template <typename Scalar>
DenseStatus DenseFront<Scalar>::FactorProfile(const int* starts, const StopToken& stop) {
  for (int column = 0; column < layout_.pivots(); column += kTileColumns) {
    if (column % kPanelColumns == 0 && stop.Requested()) return DenseStatus::kStopped;
    const bool positive = WithColumns(layout_.pivots() - column, [&](auto columns) {
      return FactorProfileColumns<columns>(starts, column);
    });
    if (!positive) return DenseStatus::kNotPositiveDefinite;
  }
  return DenseStatus::kOk;
}

// Tile of U: update slivers s .. s + kSlivers - 1, columns column .. column + 3.
template <typename Scalar>
template <int kSlivers>
void DenseFront<Scalar>::FormUpdateTile(int s, int column, int k_begin, int k_end,
                                        Scalar* update) const {
  const ptrdiff_t stride = UpdateStride(layout_.updates());
  Scalar* entries[kSlivers];
  const Scalar* rows[kSlivers];
  for (int i = 0; i < kSlivers; ++i) {
    rows[i] = Sliver(layout_.pivot_slivers() + s + i) + k_begin * kLanes;
    entries[i] = update + column * stride + (s + i) * kLanes;
  }
  Tile<Scalar, kSlivers, kTileColumns> tile;
  if (k_begin == 0) {
    tile.Clear();
  } else {
    tile.Load(entries, stride);
  }
  tile.SubtractProduct(rows, factor_ + layout_.UpdateRowStart(column) + k_begin * kLanes,
                       k_end - k_begin);
  tile.Store(entries, stride);
}

template <typename Scalar>
void DenseFront<Scalar>::FormUpdate(int begin, int end, int row_begin, int row_end,
                                    Scalar* update) const {
  const int slivers = (row_end + kLanes - 1) / kLanes;
  for (int k = 0; k < layout_.pivots(); k += kDepth) {
    const int k_end = std::min(k + kDepth, layout_.pivots());
    for (int s = std::max(begin, row_begin) / kLanes; s < slivers; s += kTileSlivers) {
      const int s_end = std::min(s + kTileSlivers, slivers);
      const int columns_end = std::min(end, s_end * kLanes);
      for (int column = begin; column < columns_end; column += kTileColumns) {
        const int first = std::max(s, column / kLanes);
        WithSlivers(s_end - first,
                    [&](auto count) { FormUpdateTile<count>(first, column, k, k_end, update); });
      }
    }
  }
}

template class DenseFront<double>;
template class DenseFront<float>;

}  // namespace sap
