// The Jacobians of the contacts of one kind: dense blocks, one or two per contact, in the order of
// their layout.
#pragma once

#include <vector>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/parallel/stop_token.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/problem/constraint_graph.h"

namespace sap {

// The unit of loops is a pair of trees.
template <int kNumRows>
class ContactJacobians {
 public:
  using Layout = ContactLayout;

  static const Layout& LayoutOf(const ConstraintGraph& graph, ConstraintKind kind) {
    return graph.contacts(kind);
  }
  // Constraints of units [begin, end), which are not empty.
  static int FirstConstraint(const Layout& layout, int begin) {
    return layout.pairs()[begin].contact_begin;
  }
  static int EndConstraint(const Layout& layout, int end) {
    return layout.pairs()[end - 1].contact_end;
  }

  void Resize(const Layout& layout) { J_.Reserve(layout.jacobian_size()); }

  // J_low, then J_high, of a contact: kNumRows x dofs row-major each.
  double* of(const ContactPair& pair, int contact) { return J_.data() + Start(pair, contact); }
  const double* of(const ContactPair& pair, int contact) const {
    return J_.data() + Start(pair, contact);
  }
  const double* of(const ContactPair& pair, int contact, bool high) const {
    return of(pair, contact) + (high ? kNumRows * pair.dofs_low : 0);
  }

  // v_c := J u for units [begin, end).
  template <typename Vectors>
  void Velocities(const ConstraintGraph& graph, const Layout& layout, int begin, int end,
                  const std::vector<double>& u, Vectors* v_c) const {
    for (int p = begin; p < end; ++p) {
      const ContactPair& pair = layout.pairs()[p];
      const double* u_low = u.data() + graph.velocity_start()[pair.low];
      const double* u_high = pair.high < 0 ? nullptr : u.data() + graph.velocity_start()[pair.high];
      ForSize(pair.dofs_low, [&](auto n_low) {
        for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
          typename Vectors::Vector sum{};
          AddJv(of(pair, i, false), n_low, u_low, &sum);
          if (u_high != nullptr) {
            ForSize(pair.dofs_high,
                    [&](auto n_high) { AddJv(of(pair, i, true), n_high, u_high, &sum); });
          }
          v_c->Set(i, sum);
        }
      });
    }
  }

  // Calls finish(i, sizes, terms) for the constraints of units [begin, end): start(i) and |J| |u|
  // added up, and the number of products in a velocity. Out of line: inlined into the loop over a
  // chunk its sums are contracted, and round differently.
  template <typename Start, typename Finish>
  [[gnu::noinline]] void ForSizes(const ConstraintGraph& graph, const Layout& layout, int begin,
                                  int end, const std::vector<double>& u, Start&& start,
                                  Finish&& finish) const {
    for (int p = begin; p < end; ++p) {
      const ContactPair& pair = layout.pairs()[p];
      const double* u_low = u.data() + graph.velocity_start()[pair.low];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        auto sizes = start(i);
        ForSize(pair.dofs_low,
                [&](auto n) { AddAbsoluteJv(of(pair, i, false), n, u_low, &sizes); });
        if (pair.high >= 0) {
          const double* u_high = u.data() + graph.velocity_start()[pair.high];
          ForSize(pair.dofs_high,
                  [&](auto n) { AddAbsoluteJv(of(pair, i, true), n, u_high, &sizes); });
        }
        finish(i, sizes, pair.dofs_low + pair.dofs_high);
      }
    }
  }

  // f += J' gamma of one tree of n degrees of freedom, over its pairs in their fixed order.
  template <typename Vectors, typename Size>
  void AddImpulse(const Layout& layout, int slot, Size n, const Vectors& gamma, double* f) const {
    for (const PairSide& side : layout.sides_of(slot)) {
      const ContactPair& pair = layout.pairs()[side.pair];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        AddJtGamma(of(pair, i, side.is_high), n, gamma.At(i), f);
      }
    }
  }

  // error += |J|' (errors + roundoff |gamma|) of one tree.
  template <typename Vectors, typename Size>
  void AddImpulseSizes(const Layout& layout, int slot, Size n, const Vectors& errors,
                       double roundoff, const Vectors& gamma, double* error) const {
    for (const PairSide& side : layout.sides_of(slot)) {
      const ContactPair& pair = layout.pairs()[side.pair];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        AddAbsoluteJtGamma(of(pair, i, side.is_high), n, errors.At(i), roundoff, gamma.At(i),
                           error);
      }
    }
  }
  // Products that the impulse on a tree sums.
  static int NumImpulseTerms(const Layout& layout, int slot) {
    int terms = 0;
    for (const PairSide& side : layout.sides_of(slot)) {
      const ContactPair& pair = layout.pairs()[side.pair];
      terms += kNumRows * (pair.contact_end - pair.contact_begin);
    }
    return terms;
  }

  // H += J' G J, the diagonal block of one tree. Cut off in a large tree when stopped.
  template <typename Matrices, typename Size>
  void AddDiagonalBlock(const Layout& layout, int slot, Size n, const Matrices& G,
                        const StopToken& stop, double* H) const {
    for (const PairSide& side : layout.sides_of(slot)) {
      const ContactPair& pair = layout.pairs()[side.pair];
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        if (n > kScalarDofs && stop.Requested()) return;
        const double* J = of(pair, i, side.is_high);
        AddJtGJ(J, n, G.At(i), J, n, H);
      }
    }
  }

  // H += J_low' G J_high, the block of a pair of trees.
  template <typename Matrices, typename LowSize, typename HighSize>
  void AddBlock(const ConstraintGraph& graph, ConstraintKind kind, int tree_pair, LowSize n_low,
                HighSize n_high, const Matrices& G, double* H) const {
    const int p = graph.contact_pair(kind, tree_pair);
    if (p < 0) return;
    const ContactPair& pair = graph.contacts(kind).pairs()[p];
    for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
      AddJtGJ(of(pair, i, false), n_low, G.At(i), of(pair, i, true), n_high, H);
    }
  }

  // Calls body(begin, end) with the constraints of a tree that no earlier tree of its group has.
  template <typename Body>
  static void ForRangesOf(const Layout& layout, const TreeGroup& group, int slot, Body&& body) {
    for (const PairSide& side : layout.sides_of(slot)) {
      const ContactPair& pair = layout.pairs()[side.pair];
      if (!IsRepeated(pair, side, group)) body(pair.contact_begin, pair.contact_end);
    }
  }

  // dv_c of the constraints of a group, where only the tree `slot` of it moves, by dv; adds to what
  // the earlier trees of the group have left.
  template <typename Vectors, typename Size>
  void AddGroupVelocities(const Layout& layout, const TreeGroup& group, int slot, Size n,
                          const double* dv, Vectors* dv_c) const {
    for (const PairSide& side : layout.sides_of(slot)) {
      const ContactPair& pair = layout.pairs()[side.pair];
      const bool repeated = IsRepeated(pair, side, group);
      for (int i = pair.contact_begin; i < pair.contact_end; ++i) {
        typename Vectors::Vector sum{};
        if (repeated) sum = dv_c->At(i);
        AddJv(of(pair, i, side.is_high), n, dv, &sum);
        dv_c->Set(i, sum);
      }
    }
  }

 private:
  static int64_t Start(const ContactPair& pair, int contact) {
    return pair.jacobian_start + static_cast<int64_t>(contact - pair.contact_begin) * kNumRows *
                                     (pair.dofs_low + pair.dofs_high);
  }
  static bool IsRepeated(const ContactPair& pair, const PairSide& side, const TreeGroup& group) {
    return side.is_high && group.Contains(pair.low);
  }

  GrowingBuffer<double> J_;
};

}  // namespace sap
