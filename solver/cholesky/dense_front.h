// Partial Cholesky factorization of one front in slivers (front_layout.h):
//
//   [ F11      ]   [ L11     ] [ L11' L21' ]   [ 0      ]
//   [ F21  F22 ] = [ L21   I ] [        I  ] + [ 0    U ],     U = F22 - L21 L21'
//
// F11 and F21 are overwritten by L11 and L21; the diagonal of L11 holds the inverses of the pivots.
// U is written without F22, which the caller adds.
//
// Left-looking by panels of columns: first the pivot rows of the panel, then the rows below, each
// group of slivers through all columns of the panel while it is in registers and first-level cache.
// Different threads may work on different ranges of rows, and of columns of U.
#pragma once

#include <cstdint>

#include "solver/cholesky/front_layout.h"
#include "solver/parallel/stop_token.h"

namespace sap {

enum class DenseStatus : uint8_t { kOk, kNotPositiveDefinite, kStopped };

template <typename Scalar>
class DenseFront {
 public:
  static constexpr int kPanelColumns = 64;

  DenseFront(const FrontLayout<Scalar>& layout, Scalar* factor)
      : layout_(layout), factor_(factor) {}

  static int NumPanels(int pivots) { return (pivots + kPanelColumns - 1) / kPanelColumns; }
  // Slivers [PanelBegin, PanelEnd) hold the pivot rows of the panel.
  int PanelBegin(int panel) const { return panel * kPanelColumns / kLanes; }
  int PanelEnd(int panel) const;

  // Subtracts the products of panels [from, to), before it, from its columns in slivers
  // [begin, end), of its pivot rows or below.
  void UpdatePanel(int panel, int begin, int end, int from, int to);
  // Factors the pivot rows of the panel. Requires UpdatePanel for all of them and all panels before
  // it. False at a pivot that is not positive and finite.
  bool FactorPanel(int panel);
  // Finishes the columns of the panel in slivers [begin, end) below its pivot rows, in which
  // UpdatePanel was called for panels [0, from). Requires FactorPanel.
  void FactorBelowPanel(int panel, int begin, int end, int from = 0);

  // All three for every panel, on this thread. Polls once per panel.
  DenseStatus FactorPivots(const StopToken& stop);

  // FactorPivots of a front without update rows of which sliver s is zero before column starts[s],
  // a multiple of kTileColumns, and stays so. Skips these zeros; same bits.
  DenseStatus FactorProfile(const int* starts, const StopToken& stop);

  // Writes columns [begin, end) of -L21 L21' in rows [row_begin, row_end), those above the diagonal
  // left out. All are multiples of 8, or an end is r.
  void FormUpdate(int begin, int end, int row_begin, int row_end, Scalar* update) const;

 private:
  static constexpr int kLanes = kNumLanes<Scalar>;
  // Columns of a product summed at a time, so that a tile's operand stays in first-level cache.
  static constexpr int kDepth = 192;

  Scalar* Sliver(int s) const { return factor_ + layout_.SliverStart(s); }
  // Entries of pivot rows column .. column + 3, the factors of a product with these columns.
  const Scalar* Operand(int column) const { return factor_ + layout_.PivotRowStart(column); }
  int PanelColumnsEnd(int panel) const;

  // The slivers of a tile.
  template <int kSlivers>
  struct Slivers {
    int number[kSlivers];
  };
  template <int kSlivers>
  static Slivers<kSlivers> SliversFrom(int s);

  template <int kSlivers, int kColumns>
  void UpdateTile(const Slivers<kSlivers>& slivers, int column, int k_begin, int k_end, bool solve);
  template <int kSlivers, int kColumns>
  bool FactorDiagonalTile(const Slivers<kSlivers>& slivers, int column, int k_begin);
  template <int kColumns>
  bool FactorProfileColumns(const int* starts, int column);
  template <int kSlivers>
  void FactorSliversBelow(int panel, int s, int from);
  template <int kSlivers>
  void FormUpdateTile(int s, int column, int k_begin, int k_end, Scalar* update) const;

  FrontLayout<Scalar> layout_;
  Scalar* factor_;
};

}  // namespace sap
