#include "solver/pools/row_jacobians.h"

namespace sap {

void RowJacobians::Multiply(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                            const double* u, LawVector<1>* v_c) const {
  const Entries entries = EntriesOf(layout);
  const int* const velocity_start = graph.velocity_start().data();
  for (int row = begin; row < end; ++row) {
    double sum = 0;
    for (const RowPart& part : layout.parts_of_row(row)) {
      sum += entries.Product(part, u + velocity_start[part.slot]);
    }
    v_c[row] = {sum};
  }
}

void RowJacobians::AddTransposed(const Layout& layout, Sides sides, const LawVector<1>* gamma,
                                 double* f) const {
  const Entries entries = EntriesOf(layout);
  const RowPart* const parts = layout.parts().data();
  for (const int p : sides) {
    const double impulse = gamma[parts[p].row][0];
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
    entries.ForEach(parts[p], [&](int dof, double J) { error[dof] += std::abs(J) * size; });
  }
}

}  // namespace sap
