// Partial Cholesky factorization of one front in slivers (front_layout.h):
//
//   [ F11      ]   [ L11     ] [ L11' L21' ]   [ 0      ]
//   [ F21  F22 ] = [ L21   I ] [        I  ] + [ 0    U ],     U = F22 - L21 L21'
//
// F11 and F21 are overwritten by L11 and L21, with the inverse of the pivots on the diagonal of
// L11; U is written without F22, which the caller adds. Left-looking by panels of columns: the rows
// of a panel itself first, then the rows below, each group of slivers from start to end while it is
// in registers and first-level cache. Ranges of rows, and of columns of U, may be worked on by
// different threads.
#pragma once

#include "solver/cholesky/front_layout.h"

namespace sap {

template <typename Scalar>
class DenseFront {
 public:
  static constexpr int kPanelColumns = 64;

  DenseFront(const FrontLayout<Scalar>& layout, Scalar* factor)
      : layout_(layout), factor_(factor) {}

  static int NumPanels(int pivots) { return (pivots + kPanelColumns - 1) / kPanelColumns; }
  // Slivers of the rows of the panel: [PanelBegin, PanelEnd).
  int PanelBegin(int panel) const { return panel * kPanelColumns / kLanes; }
  int PanelEnd(int panel) const;

  // Subtracts the products of the panels before from slivers [begin, end) of the panel's rows.
  void UpdatePanel(int panel, int begin, int end);
  // The rows of the panel, all of which have been updated. False at a pivot that is not positive
  // and finite.
  bool FactorPanel(int panel);
  // Slivers [begin, end) below the rows of the panel, which has been factored.
  void FactorBelowPanel(int panel, int begin, int end);

  // Columns [begin, end) of U = -L21 L21'. Both are multiples of kUpdateUnit, or the end is r.
  static constexpr int kUpdateUnit = 8;
  void FormUpdate(int begin, int end, Scalar* update) const;

 private:
  static constexpr int kLanes = FrontLayout<Scalar>::kLanes;
  // Columns whose products are summed up at a time: a tile's operand stays in first-level cache.
  static constexpr int kDepth = 192;

  Scalar* Sliver(int s) const { return factor_ + layout_.SliverStart(s); }
  // The lanes of pivot rows column .. column + 3, which multiply these columns.
  const Scalar* Operand(int column) const { return factor_ + layout_.PivotRowStart(column); }
  int PanelColumnsEnd(int panel) const;

  template <int kSlivers, int kColumns>
  void UpdateTile(int s, int column, int k_begin, int k_end, bool solve);
  template <int kSlivers, int kColumns>
  bool FactorDiagonalTile(int s, int column, int k_begin);
  template <int kSlivers>
  void FactorSliversBelow(int panel, int s);
  template <int kSlivers>
  void FormUpdateTile(int s, int column, int k_begin, int k_end, Scalar* update) const;

  FrontLayout<Scalar> layout_;
  Scalar* factor_;
};

}  // namespace sap
