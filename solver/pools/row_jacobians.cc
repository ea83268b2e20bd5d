#include "solver/pools/row_jacobians.h"

#include <algorithm>

namespace sap {

namespace {

constexpr int kFour = kNumLanes<double>;

// Whether parts from this one on are the only ones of four rows, full and of one tree. Rows are
// sorted by their first tree, and full parts are numbered in their order.
bool AreFourFullRows(const RowPart* part, const RowPart* end) {
  if (end - part < kFour || !part->is_full()) return false;
  const RowPart& last = part[kFour - 1];
  return last.full == part->full + kFour - 1 && last.row == part->row + kFour - 1 &&
         last.slot == part->slot && (end - part == kFour || part[kFour].row != last.row);
}

// J v of four rows of six entries.
Lanes4 MultiplyFour(const double* J, const double* v) {
  constexpr int kColumns = SixDofs();
  Lanes4 sum{};
  for (int i = 0; i < kColumns; ++i) {
    sum += Lanes4{J[i], J[kColumns + i], J[2 * kColumns + i], J[3 * kColumns + i]} * v[i];
  }
  return sum;
}

}  // namespace

void RowJacobians::SetRow(const Layout& layout, int row, const double* coefficients) {
  const std::span<const RowPart> parts = layout.parts_of_row(row);
  const double* const __restrict from = coefficients - parts.front().entry_begin;
  double* const __restrict J = J_.data();
  for (const RowPart& part : parts) {
    const int64_t end = part.entry_end;
    if (!part.is_full()) {
      for (int64_t e = part.entry_begin; e < end; ++e) J[e] = from[e];
      continue;
    }
    double* const full = full_.data() + static_cast<ptrdiff_t>(kColumns) * part.full;
    Store(full, Lanes4{});
    Store(full + 4, Lanes2{});
    const int* const dof = layout.dof().data();
    for (int64_t e = part.entry_begin; e < end; ++e) full[dof[e]] = J[e] = from[e];
  }
}

void RowJacobians::Multiply(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                            const double* u, LawVector<1>* v_c) const {
  if (begin == end) return;
  const Entries entries = EntriesOf(layout);
  const int* const velocity_start = graph.velocity_start().data();
  const RowPart* part = layout.parts_of_row(begin).data();
  const RowPart* const end_of_parts =
      layout.parts_of_row(end - 1).data() + layout.parts_of_row(end - 1).size();
  while (part != end_of_parts) {
    const int row = part->row;
    if (AreFourFullRows(part, end_of_parts)) {
      Store(v_c[row].data(), MultiplyFour(entries.FullRow(*part), u + velocity_start[part->slot]));
      part += kFour;
      continue;
    }
    double sum = 0;
    do {
      sum += entries.Product(*part, u + velocity_start[part->slot]);
    } while (++part != end_of_parts && part->row == row);
    v_c[row] = {sum};
  }
}

void RowJacobians::AddTransposed(const Layout& layout, Sides sides, const LawVector<1>* gamma,
                                 double* f) const {
  const Entries entries = EntriesOf(layout);
  const RowPart* const parts = layout.parts().data();
  for (const int p : sides) {
    const double impulse = gamma[parts[p].row][0];
    if (parts[p].is_full()) {
      AddSix(SixLanes(entries.FullRow(parts[p])) * impulse, f);
      continue;
    }
    entries.ForEach(parts[p], [&](int dof, double J) { f[dof] += J * impulse; });
  }
}

void RowJacobians::AddTransposedSizes(const Layout& layout, Sides sides, const LawVector<1>* errors,
                                      double roundoff, const LawVector<1>* gamma,
                                      double* error) const {
  const Entries entries = EntriesOf(layout);
  const RowPart* const parts = layout.parts().data();
  for (const int p : sides) {
    const int row = parts[p].row;
    const double size = errors[row][0] + roundoff * std::abs(gamma[row][0]);
    if (parts[p].is_full()) {
      const SixLanes full(entries.FullRow(parts[p]));
      AddSix(SixLanes(Abs(full.head), Abs(full.tail)) * size, error);
      continue;
    }
    entries.ForEach(parts[p], [&](int dof, double J) { error[dof] += std::abs(J) * size; });
  }
}

}  // namespace sap
