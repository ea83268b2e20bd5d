// The Jacobians of the contacts of one kind: a dense block for each tree of a contact, in the order
// of their layout.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/problem/constraint_graph.h"

namespace sap {

// The unit of loops is a group of contacts between the same trees.
template <int kNumRows>
class ContactJacobians {
 public:
  using Layout = ContactLayout;

  static const Layout& LayoutOf(const ConstraintGraph& graph, ConstraintKind kind) {
    return graph.contacts(kind);
  }
  // Constraints of units [begin, end), which are not empty.
  static int FirstConstraint(const Layout& layout, int begin) {
    return layout.groups()[begin].contact_begin;
  }
  static int EndConstraint(const Layout& layout, int end) {
    return layout.groups()[end - 1].contact_end;
  }

  // Sides of contacts of a tree in this pool, in the fixed order of sums over it.
  using Sides = std::span<const ContactSide>;
  static Sides SidesOf(const Layout& layout, int slot) { return layout.sides_of(slot); }

  void Resize(const Layout& layout) {
    J_.Reserve(layout.jacobian_size());
    const bool has_large_trees = std::ranges::any_of(
        layout.parts(), [](const ContactPart& part) { return part.dofs > kScalarDofs; });
    if (has_large_trees) columns_.Reserve(layout.jacobian_size() / kNumRows);
  }

  size_t storage_bytes() const { return StorageBytes(J_, columns_); }
  // The Jacobian of a contact: for each part of its group a block of kNumRows x dofs, row-major.
  double* of(const ContactGroup& group, int contact) { return J_.data() + Start(group, contact); }
  const double* of(const ContactGroup& group, int contact) const {
    return J_.data() + Start(group, contact);
  }
  // The block of one part.
  double* of(const ContactGroup& group, int contact, const ContactPart& part) {
    return of(group, contact) + kNumRows * part.column;
  }
  const double* of(const ContactGroup& group, int contact, const ContactPart& part) const {
    return of(group, contact) + kNumRows * part.column;
  }

  // To be called of each part of a contact once its block is set.
  void FindColumns(const ContactGroup& group, int contact, const ContactPart& part) {
    if (part.dofs <= kScalarDofs) return;
    ColumnFours::Find(of(group, contact, part), kNumRows, part.dofs,
                      columns_.data() + ColumnsStart(group, contact, part));
  }

  // v_c := J u for units [begin, end).
  template <typename Vectors>
  void Velocities(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                  const std::vector<double>& u, Vectors* v_c) const {
    const std::span<const int> start = graph.velocity_start();
    for (int g = begin; g < end; ++g) {
      const ContactGroup& group = layout.groups()[g];
      const ContactPart& first = layout.parts()[group.part_begin];
      ForSize(first.dofs, [&](auto n) {
        for (int i = group.contact_begin; i < group.contact_end; ++i) {
          typename Vectors::Vector sum{};
          sum = PlusVelocity(sum, group, i, first, n, u.data() + start[first.slot]);
          for (int p = group.part_begin + 1; p < group.part_end; ++p) {
            const ContactPart& part = layout.parts()[p];
            ForSize(part.dofs, [&](auto m) {
              sum = PlusVelocity(sum, group, i, part, m, u.data() + start[part.slot]);
            });
          }
          v_c->Set(i, sum);
        }
      });
    }
  }

  // Calls finish(i, sizes, terms) for the constraints of units [begin, end): start(i) and |J| |u|
  // added up, and the number of products in a velocity.
  template <typename Start, typename Finish>
  void ForSizes(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                const std::vector<double>& u, Start&& start, Finish&& finish) const {
    for (int g = begin; g < end; ++g) {
      const ContactGroup& group = layout.groups()[g];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        auto sizes = start(i);
        for (const ContactPart& part : layout.parts_of(group)) {
          const double* v = u.data() + graph.velocity_start()[part.slot];
          ForSize(part.dofs, [&](auto n) {
            WithBlock(group, i, part, n, [&](const double* J, auto... columns) {
              AddAbsoluteJv(J, n, columns..., v, &sizes);
            });
          });
        }
        finish(i, sizes, group.dofs);
      }
    }
  }

  // f += J' gamma of one tree of n degrees of freedom, over some of its sides.
  template <typename Vectors, typename Size>
  void AddImpulse(const Layout& layout, Sides sides, Size n, const Vectors& gamma,
                  double* f) const {
    for (const ContactSide& side : sides) {
      const ContactGroup& group = layout.groups()[side.group];
      const ContactPart& part = layout.parts()[side.part];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        WithBlock(group, i, part, n, [&](const double* J, auto... columns) {
          AddJtGamma(J, n, columns..., gamma.At(i), f);
        });
      }
    }
  }

  // error += |J|' (errors + roundoff |gamma|) of one tree.
  template <typename Vectors, typename Size>
  void AddImpulseSizes(const Layout& layout, int slot, Size n, const Vectors& errors,
                       double roundoff, const Vectors& gamma, double* error) const {
    for (const ContactSide& side : layout.sides_of(slot)) {
      const ContactGroup& group = layout.groups()[side.group];
      const ContactPart& part = layout.parts()[side.part];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        WithBlock(group, i, part, n, [&](const double* J, auto... columns) {
          AddAbsoluteJtGamma(J, n, columns..., errors.At(i), roundoff, gamma.At(i), error);
        });
      }
    }
  }
  // Products that the impulse on a tree sums.
  static int NumImpulseTerms(const Layout& layout, int slot) {
    int terms = 0;
    for (const ContactSide& side : layout.sides_of(slot)) {
      terms += kNumRows * layout.groups()[side.group].num_contacts();
    }
    return terms;
  }

  // H += J' G J, the diagonal block of one tree, over some of its sides. Cut off in a large tree
  // when stopped.
  template <typename Matrices, typename Size>
  void AddDiagonalBlock(const Layout& layout, Sides sides, Size n, const Matrices& G,
                        const StopToken& stop, double* H) const {
    for (const ContactSide& side : sides) {
      const ContactGroup& group = layout.groups()[side.group];
      const ContactPart& part = layout.parts()[side.part];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        if (n > kUnpolledDofs && stop.Requested()) return;
        WithBlock(group, i, part, n, [&](const double* J, auto... columns) {
          if constexpr (sizeof...(columns) == 0) {
            AddJtGJ(J, n, G.At(i), J, n, H);
          } else {
            AddJtGJ(J, n, columns..., ToLawMatrix(G.At(i)), H);
          }
        });
      }
    }
  }

  // H += J_low' G J_high, the block of a pair of trees.
  template <typename Matrices, typename LowSize, typename HighSize>
  void AddBlock(const ConstraintGraph& graph, ConstraintKind kind, int tree_pair, LowSize n_low,
                HighSize n_high, const Matrices& G, double* H) const {
    const Layout& layout = graph.contacts(kind);
    const IndexRange range = graph.couplings(kind, tree_pair);
    for (int c = range.begin; c < range.end; ++c) {
      const PartCoupling& coupling = layout.couplings()[c];
      const ContactGroup& group = layout.groups()[coupling.unit];
      const ContactPart& low = layout.parts()[coupling.part_low];
      const ContactPart& high = layout.parts()[coupling.part_high];
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        AddJtGJ(of(group, i, low), n_low, G.At(i), of(group, i, high), n_high, H);
      }
    }
  }

  // Calls body(begin, end) with the constraints of sides of a tree that no earlier tree of its
  // swept group has.
  template <typename Body>
  static void ForRangesOf(const Layout& layout, const TreeGroup& swept, Sides sides, Body&& body) {
    for (const ContactSide& side : sides) {
      const ContactGroup& group = layout.groups()[side.group];
      if (!IsRepeated(layout, side, swept)) body(group.contact_begin, group.contact_end);
    }
  }

  // dv_c of the constraints of a swept group, where only the tree with these sides moves, by dv;
  // adds to what the earlier trees of the group have left.
  template <typename Vectors, typename Size>
  void AddGroupVelocities(const Layout& layout, const TreeGroup& swept, Sides sides, Size n,
                          const double* dv, Vectors* dv_c) const {
    for (const ContactSide& side : sides) {
      const ContactGroup& group = layout.groups()[side.group];
      const ContactPart& part = layout.parts()[side.part];
      const bool repeated = IsRepeated(layout, side, swept);
      for (int i = group.contact_begin; i < group.contact_end; ++i) {
        typename Vectors::Vector sum{};
        if (repeated) sum = dv_c->At(i);
        dv_c->Set(i, PlusVelocity(sum, group, i, part, n, dv));
      }
    }
  }

 private:
  // Calls body(J), or body(J, ColumnFours) with the block in a tree of more than kScalarDofs.
  template <typename Size, typename Body>
  void WithBlock(const ContactGroup& group, int contact, const ContactPart& part, Size n,
                 Body&& body) const {
    const double* J = of(group, contact, part);
    if constexpr (std::is_same_v<Size, int>) {
      if (n > kScalarDofs) {
        return body(J, ColumnFours{columns_.data() + ColumnsStart(group, contact, part)});
      }
    }
    body(J);
  }
  // v_c + J u of one part. By value: kernels of large trees, which are not inlined, take its
  // address, and loops over small trees keep it in registers.
  template <typename Vector, typename Size>
  Vector PlusVelocity(Vector v_c, const ContactGroup& group, int contact, const ContactPart& part,
                      Size n, const double* u) const {
    WithBlock(group, contact, part, n,
              [&](const double* J, auto... columns) { AddJv(J, n, columns..., u, &v_c); });
    return v_c;
  }
  static int64_t ColumnsStart(const ContactGroup& group, int contact, const ContactPart& part) {
    return Start(group, contact) / kNumRows + part.column;
  }
  static int64_t Start(const ContactGroup& group, int contact) {
    return group.jacobian_start +
           static_cast<int64_t>(contact - group.contact_begin) * kNumRows * group.dofs;
  }
  // Whether an earlier tree of the contacts is in the swept group.
  static bool IsRepeated(const Layout& layout, const ContactSide& side, const TreeGroup& swept) {
    for (int part = layout.groups()[side.group].part_begin; part < side.part; ++part) {
      if (swept.Contains(layout.parts()[part].slot)) return true;
    }
    return false;
  }

  GrowingBuffer<double> J_;
  GrowingBuffer<int> columns_;  // ColumnFours
};

}  // namespace sap
