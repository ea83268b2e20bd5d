#include "solver/pools/row_jacobians.h"

#include <algorithm>

namespace sap {

namespace {

constexpr int kFour = kNumLanes<double>;

// Whether parts from this full one on are the only ones of four rows, full and of one tree. Rows
// are sorted by their first tree, and full parts are numbered in their order.
bool AreFourFullRows(const RowPart* part, const RowPart* end) {
  if (end - part < kFour) return false;
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

// J v of rows of which the first is full. A function of its own, so that loops over other rows have
// the registers that this takes.
template <typename Entries>
[[gnu::noinline]] void MultiplyFullRows(const Entries& entries, const RowLayout& layout,
                                        const int* velocity_start, int begin, int end,
                                        const double* u, LawVector<1>* v_c) {
  const RowPart* const end_of_parts = layout.parts().data() + layout.parts().size();
  for (int row = begin; row < end;) {
    const std::span<const RowPart> parts = layout.parts_of_row(row);
    const RowPart& first = parts.front();
    if (first.is_full() && end - row >= kFour && AreFourFullRows(&first, end_of_parts)) {
      Store(v_c[row].data(), MultiplyFour(entries.FullRow(first), u + velocity_start[first.slot]));
      row += kFour;
      continue;
    }
    double sum = 0;
    for (const RowPart& part : parts) {
      sum += entries.Product(part, u + velocity_start[part.slot]);
    }
    v_c[row++] = {sum};
  }
}

}  // namespace

void RowJacobians::SetFull(const Layout& layout, const RowPart& part) {
  double* const full = full_.data() + static_cast<ptrdiff_t>(kColumns) * part.full;
  Store(full, Lanes4{});
  Store(full + 4, Lanes2{});
  EntriesOf(layout).ForEach(part, [&](int dof, double J) { full[dof] = J; });
}

void RowJacobians::Multiply(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                            const double* u, LawVector<1>* v_c) const {
  const Entries entries = EntriesOf(layout);
  const int* const velocity_start = graph.velocity_start().data();
  if (begin < end && layout.parts_of_row(begin).front().is_full()) {
    return MultiplyFullRows(entries, layout, velocity_start, begin, end, u, v_c);
  }
  for (int row = begin; row < end; ++row) {
    double sum = 0;
    for (const RowPart& part : layout.parts_of_row(row)) {
      sum += entries.Product(part, u + velocity_start[part.slot]);
    }
    v_c[row] = {sum};
  }
}

template <typename Size>
void RowJacobians::AddTransposed(const Layout& layout, Sides sides, const LawVector<1>* gamma,
                                 double* f) const {
  const Entries entries = EntriesOf(layout);
  const RowPart* const parts = layout.parts().data();
  for (const int p : sides) {
    const double impulse = gamma[parts[p].row][0];
    if (std::is_same_v<Size, SixDofs> && parts[p].is_full()) {
      AddSix(SixLanes(entries.FullRow(parts[p])) * impulse, f);
      continue;
    }
    entries.ForEach(parts[p], [&](int dof, double J) { f[dof] += J * impulse; });
  }
}

template <typename Size>
void RowJacobians::AddTransposedSizes(const Layout& layout, Sides sides, const LawVector<1>* errors,
                                      double roundoff, const LawVector<1>* gamma,
                                      double* error) const {
  const Entries entries = EntriesOf(layout);
  const RowPart* const parts = layout.parts().data();
  for (const int p : sides) {
    const int row = parts[p].row;
    const double size = errors[row][0] + roundoff * std::abs(gamma[row][0]);
    if (std::is_same_v<Size, SixDofs> && parts[p].is_full()) {
      const SixLanes full(entries.FullRow(parts[p]));
      AddSix(SixLanes(Abs(full.head), Abs(full.tail)) * size, error);
      continue;
    }
    entries.ForEach(parts[p], [&](int dof, double J) { error[dof] += std::abs(J) * size; });
  }
}

template void RowJacobians::AddTransposed<int>(const Layout&, Sides, const LawVector<1>*,
                                               double*) const;
template void RowJacobians::AddTransposed<SixDofs>(const Layout&, Sides, const LawVector<1>*,
                                                   double*) const;
template void RowJacobians::AddTransposedSizes<int>(const Layout&, Sides, const LawVector<1>*,
                                                    double, const LawVector<1>*, double*) const;
template void RowJacobians::AddTransposedSizes<SixDofs>(const Layout&, Sides, const LawVector<1>*,
                                                        double, const LawVector<1>*, double*) const;

}  // namespace sap
