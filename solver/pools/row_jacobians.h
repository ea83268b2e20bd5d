// The Jacobians of the constraint rows of one kind: the coefficients of their entries, in the order
// of their layout.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "solver/cholesky/dense_sizes.h"
#include "solver/laws/law_types.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/problem/constraint_graph.h"

namespace sap {

// The unit of loops is a row. The interface is that of ContactJacobians. Loops are functions of
// their own, the same for trees of any size and for every law of rows: a copy in each of their
// callers would be more code to fetch, for a loop over few entries.
class RowJacobians {
 public:
  using Layout = RowLayout;

  static const Layout& LayoutOf(const ConstraintGraph& graph, ConstraintKind kind) {
    return graph.rows(kind);
  }
  static int FirstConstraint(const Layout&, int begin) { return begin; }
  static int EndConstraint(const Layout&, int end) { return end; }

  // Parts of rows of a tree in this pool.
  using Sides = std::span<const int>;
  static Sides SidesOf(const Layout& layout, int slot) { return layout.parts_of_slot(slot); }

  void Resize(const Layout& layout) {
    J_.Reserve(layout.num_entries());
    full_.Reserve(static_cast<size_t>(kColumns) * layout.num_full_parts());
  }

  size_t storage_bytes() const { return StorageBytes(J_, full_); }
  // The coefficient of an entry.
  double at(int64_t entry) const { return J_.data()[entry]; }
  // Sets those of a row.
  void SetRow(const Layout& layout, int row, const double* coefficients) {
    const std::span<const RowPart> parts = layout.parts_of_row(row);
    const int64_t begin = parts.front().entry_begin;
    for (int64_t e = begin; e < parts.back().entry_end; ++e) {
      J_.data()[e] = coefficients[e - begin];
    }
    for (const RowPart& part : parts) {
      if (part.is_full()) SetFull(layout, part);
    }
  }

  template <typename Vectors>
  void Velocities(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                  const std::vector<double>& u, Vectors* v_c) const {
    Multiply(graph, layout, begin, end, u.data(), v_c->values.data());
  }

  template <typename Start, typename Finish>
  void ForSizes(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                const std::vector<double>& u, Start&& start, Finish&& finish) const {
    const Entries entries = EntriesOf(layout);
    const int* const velocity_start = graph.velocity_start().data();
    for (int row = begin; row < end; ++row) {
      auto sizes = start(row);
      int terms = 0;
      for (const RowPart& part : layout.parts_of_row(row)) {
        const double* v = u.data() + velocity_start[part.slot];
        entries.ForEach(part, [&](int dof, double J) { sizes[0] += std::abs(J * v[dof]); });
        terms += static_cast<int>(part.entry_end - part.entry_begin);
      }
      finish(row, sizes, terms);
    }
  }

  template <typename Vectors, typename Size>
  void AddImpulse(const Layout& layout, Sides sides, Size, const Vectors& gamma, double* f) const {
    if constexpr (std::is_same_v<Size, OneDof>) {
      ForEntries(layout, sides, [&](int row, double J) { *f += J * gamma.At(row)[0]; });
    } else {
      if (!sides.empty()) AddTransposed<Size>(layout, sides, gamma.values.data(), f);
    }
  }

  template <typename Vectors, typename Size>
  void AddImpulseSizes(const Layout& layout, int slot, Size, const Vectors& errors, double roundoff,
                       const Vectors& gamma, double* error) const {
    const Sides sides = SidesOf(layout, slot);
    if constexpr (std::is_same_v<Size, OneDof>) {
      ForEntries(layout, sides, [&](int row, double J) {
        *error += std::abs(J) * (errors.At(row)[0] + roundoff * std::abs(gamma.At(row)[0]));
      });
    } else {
      if (sides.empty()) return;
      AddTransposedSizes<Size>(layout, sides, errors.values.data(), roundoff, gamma.values.data(),
                               error);
    }
  }
  static int NumImpulseTerms(const Layout& layout, int slot) {
    return static_cast<int>(layout.parts_of_slot(slot).size());
  }

  template <typename Matrices, typename Size>
  void AddDiagonalBlock(const Layout& layout, Sides sides, Size n, const Matrices& G,
                        const StopToken& stop, double* H) const {
    if constexpr (std::is_same_v<Size, OneDof>) {
      ForEntries(layout, sides, [&](int row, double J) {
        const double G_row = G.At(row)(0, 0);
        if (G_row != 0) *H += G_row * J * J;
      });
    } else {
      AddProductsOfTree(layout, sides, n, G, stop, H);
    }
  }

  template <typename Matrices, typename LowSize, typename HighSize>
  void AddBlock(const ConstraintGraph& graph, ConstraintKind kind, int tree_pair, LowSize,
                HighSize n_high, const Matrices& G, double* H) const {
    const Layout& layout = graph.rows(kind);
    const Entries entries = EntriesOf(layout);
    const RowPart* const parts = layout.parts().data();
    const IndexRange range = graph.couplings(kind, tree_pair);
    for (int c = range.begin; c < range.end; ++c) {
      const PartCoupling& coupling = layout.couplings()[c];
      entries.AddProducts(parts[coupling.part_low], parts[coupling.part_high], n_high,
                          G.At(coupling.unit)(0, 0), H);
    }
  }

  template <typename Body>
  static void ForRangesOf(const Layout& layout, const TreeGroup& group, Sides sides, Body&& body) {
    for (const int p : sides) {
      const RowPart& part = layout.parts()[p];
      if (!IsRepeated(layout, part, group)) body(part.row, part.row + 1);
    }
  }

  template <typename Vectors, typename Size>
  void AddGroupVelocities(const Layout& layout, const TreeGroup& group, Sides sides, Size,
                          const double* dv, Vectors* dv_c) const {
    const Entries entries = EntriesOf(layout);
    for (const int p : sides) {
      const RowPart& part = layout.parts()[p];
      const double before = IsRepeated(layout, part, group) ? dv_c->At(part.row)[0] : 0.0;
      dv_c->Set(part.row, {before + entries.Product(part, dv)});
    }
  }

 private:
  // The entries of all rows. Loops read them through a copy of this on their stack, as the compiler
  // cannot tell that what they store changes no pointer of the layout.
  struct Entries {
    const int* dof;
    const double* J;
    const double* full;

    const double* FullRow(const RowPart& part) const {
      return full + static_cast<ptrdiff_t>(kColumns) * part.full;
    }

    template <typename Body>
    void ForEach(const RowPart& part, Body&& body) const {
      const int64_t end = part.entry_end;
      for (int64_t e = part.entry_begin; e < end; ++e) body(dof[e], J[e]);
    }
    double Product(const RowPart& part, const double* v) const {
      double sum = 0;
      ForEach(part, [&](int i, double J_i) { sum += J_i * v[i]; });
      return sum;
    }
    // H += J_a' G J_b of a row-major block with n_b columns.
    template <typename Size>
    void AddProducts(const RowPart& a, const RowPart& b, Size n_b, double G, double* H) const {
      if (G == 0) return;
      ForEach(a, [&](int i, double J_i) {
        double* const row = H + static_cast<ptrdiff_t>(i) * n_b;
        const double G_J_i = G * J_i;
        ForEach(b, [&](int j, double J_j) { row[j] += G_J_i * J_j; });
      });
    }
    // Product of a full part with itself.
    void AddFullProducts(const RowPart& part, double G, double* H) const {
      if (G == 0) return;
      const SixLanes row(FullRow(part));
      double G_J[kColumns];
      Store(G_J, row.head * G);
      Store(G_J + 4, row.tail * G);
      for (int i = 0; i < kColumns; ++i) AddSix(row * G_J[i], H + kColumns * i);
    }
  };
  static void AddSix(const SixLanes& row, double* sum) {
    Store(sum, Load<Lanes4>(sum) + row.head);
    Store(sum + 4, Load<Lanes2>(sum + 4) + row.tail);
  }
  // Calls body(row, coefficient) for parts of a tree of one degree of freedom, of one entry each.
  template <typename Body>
  void ForEntries(const Layout& layout, Sides sides, Body&& body) const {
    const RowPart* const parts = layout.parts().data();
    const double* const J = J_.data();
    for (const int p : sides) body(parts[p].row, J[parts[p].entry_begin]);
  }
  // Only where a tree has six degrees of freedom are parts asked whether they are full.
  template <typename Matrices, typename Size>
  [[gnu::noinline]] void AddProductsOfTree(const Layout& layout, Sides sides, Size n,
                                           const Matrices& G, const StopToken& stop,
                                           double* H) const {
    const Entries entries = EntriesOf(layout);
    const RowPart* const parts = layout.parts().data();
    for (const int p : sides) {
      if (n > kUnpolledDofs && stop.Requested()) return;
      const double G_row = G.At(parts[p].row)(0, 0);
      if (std::is_same_v<Size, SixDofs> && parts[p].is_full()) {
        entries.AddFullProducts(parts[p], G_row, H);
      } else {
        entries.AddProducts(parts[p], parts[p], n, G_row, H);
      }
    }
  }
  // Copies the entries of a part to its full row.
  void SetFull(const Layout& layout, const RowPart& part);
  // v_c := J u for rows [begin, end).
  void Multiply(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                const double* u, LawVector<1>* v_c) const;
  // f += J' gamma of one tree, over some of its sides.
  template <typename Size>
  void AddTransposed(const Layout& layout, Sides sides, const LawVector<1>* gamma, double* f) const;
  // error += |J|' (errors + roundoff |gamma|) of the same.
  template <typename Size>
  void AddTransposedSizes(const Layout& layout, Sides sides, const LawVector<1>* errors,
                          double roundoff, const LawVector<1>* gamma, double* error) const;

  Entries EntriesOf(const Layout& layout) const {
    return {layout.dof().data(), J_.data(), full_.data()};
  }

  static bool IsRepeated(const Layout& layout, const RowPart& part, const TreeGroup& group) {
    if (group.slots.size() == 1) return false;  // a row has one part of each tree
    for (const RowPart& other : layout.parts_of_row(part.row)) {
      if (other.slot == part.slot) return false;
      if (group.Contains(other.slot)) return true;
    }
    return false;
  }

  static constexpr int kColumns = SixDofs();

  GrowingBuffer<double> J_;
  // Full parts once more, with their zeros: six entries each.
  GrowingBuffer<double> full_;
};

}  // namespace sap
