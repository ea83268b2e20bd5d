// w of contacts and rows, the estimate of W = J A^-1 J' that R and eps are made of, and its
// derivatives.
//
//   contact   w = max(|W|_F, |M|_F) / 3, or less (load_paths.h)
//   row       w = W
//
// A contact has W of its three linear rows and M = L W_a L of its angular ones, with L_j = 1e-3
// mu_j / mu. M is larger only where the contact moves along its axes by less than a thousandth of
// what it turns about them, in units of friction: at the pivot of a hinge. R_t = sigma w, which
// friction about the axes is regularized by as well, would otherwise vanish there. w = 0 where
// nothing moves. Derivatives, of the larger one, with D = W or M:
//
//   dw/dD = D / (9 w),   dM = L dW_a L + dL W_a L + L W_a dL
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/model/sap_model.h"
#include "solver/parallel/growing_buffer.h"
#include "solver/pools/jacobian_kernels.h"

namespace sap {

// The three columns of W = J A^-1 J', one lane per row of J; the fourth lane stays zero.
struct DelassusColumns {
  Lanes4 x{}, y{}, n{};

  const Lanes4& row(int i) const { return i == 0 ? x : (i == 1 ? y : n); }
};

// W += J A^-1 J' for one tree by L D L' = A, with the inverse of D on the diagonal of `factor`; X
// is scratch of n. J is 3 x n row-major.
template <typename Size>
inline void AddDelassus(const double* J, Size n, const double* factor, Lanes4* X,
                        DelassusColumns* W) {
  for (int i = 0; i < n; ++i) X[i] = Lanes4{J[i], J[n + i], J[2 * n + i], 0};
  SolveUnitLower(factor, n, X);
  for (int i = 0; i < n; ++i) {
    const Lanes4 scaled = X[i] * factor[i * n + i];
    W->x += scaled * X[i][0];
    W->y += scaled * X[i][1];
    W->n += scaled * X[i][2];
  }
}

// AddDelassus by U D U' = A of a large tree. J of a point is zero in most columns, and U^-1 J' is
// non-zero only in rows that the columns of J hang on. X is scratch of n.
[[gnu::noinline]] inline void AddDelassusOfU(const double* J, int n, const TreeFactor& factor,
                                             Lanes4* X, DelassusColumns* W) {
  int* const rows = ListOfThread(n);
  const auto column = [&](int i) { return Lanes4{J[i], J[n + i], J[2 * n + i], 0}; };
  const int count = ListRows(
      factor.ends, n, [&](int i) { return J[i] != 0 || J[n + i] != 0 || J[2 * n + i] != 0; }, rows);
  for (int p = 0; p < count; ++p) X[p] = column(rows[p]);
  HalfSolveRows(factor.entries, n, rows, count, X);
  for (int p = 0; p < count; ++p) {
    const ptrdiff_t i = rows[p];
    const Lanes4 scaled = X[p] * factor.entries[i * n + i];
    W->x += scaled * X[p][0];
    W->y += scaled * X[p][1];
    W->n += scaled * X[p][2];
  }
}

// W += J D^2 J', with the diagonal D^-2 of A in place of A.
inline void AddDiagonalDelassus(const double* J, int n, const double* D, DelassusColumns* W) {
  for (int i = 0; i < n; ++i) {
    const Lanes4 x = Lanes4{J[i], J[n + i], J[2 * n + i], 0} * D[i];
    W->x += x * x[0];
    W->y += x * x[1];
    W->n += x * x[2];
  }
}

// |W|_F.
inline double Norm(const DelassusColumns& W) {
  return std::sqrt(Sum(W.x * W.x + W.y * W.y + W.n * W.n));
}

// The rows of a constraint by which w is estimated: linear ones, or angular ones.
struct DelassusRows {
  int begin, end;

  int count() const { return end - begin; }
};
// Entries in which dw/dW is not 0.
template <int rows>
inline DelassusRows RowsOf(const LawMatrix<rows>& w_by_W) {
  for (int row = 3; row < rows; ++row) {
    if (w_by_W(row, row) != 0) return {3, rows};
  }
  return {0, std::min(rows, 3)};
}

// L, and 0 beyond the angular rows.
template <int rows>
inline std::array<double, 3> FrictionArms(const ConeInputs& in) {
  constexpr double kShare = 1e-3;
  std::array<double, 3> arms{};
  for (int row = 3; row < rows; ++row) {
    arms[row - 3] = kShare * in.angular_friction[row - rows + 3] / in.mu;
  }
  return arms;
}

// A contact with its Jacobian and W.
struct ContactColumns {
  std::span<const ContactPart> parts;
  const double* J;
  DelassusColumns W;
};

// Contacts of coupled trees whose W is found at once: each reads the large fronts near the root,
// which are read once for all of them. Their columns fill three vectors.
inline constexpr int kContactsTogether = 4;

// w by the rule of the problem, in the unit of mass of the island.
struct DelassusEstimate {
  const ContactProblem& problem;
  const ConstraintGraph& graph;
  const SapModel& model;
  double mass_unit;

  bool is_diagonal() const { return problem.regularization().rule == DelassusRule::kDiagonal; }

  // The component of coupled trees with which w of a tree is computed; -1: the tree is on its own,
  // as all are under the rule of the diagonal of A.
  int ComponentOf(int slot) const {
    if (is_diagonal()) return -1;
    return model.coupled_trees().component_of(graph.islands().tree_of_slot()[slot]);
  }
  bool IsCoupled(int slot) const { return ComponentOf(slot) >= 0; }

  // Adds the part of one uncoupled tree to W.
  void AddTree(int slot, const double* J, DelassusColumns* W) const {
    const int dofs = graph.dofs()[slot];
    if (is_diagonal()) {
      AddDiagonalDelassus(J, dofs, model.D().data() + graph.velocity_start()[slot], W);
      return;
    }
    const TreeFactor factor = model.A_factor(graph, slot);
    WithTreeScratch(static_cast<size_t>(kNumLanes<double>) * dofs, [&](double* scratch) {
      auto* X = reinterpret_cast<Lanes4*>(scratch);
      if (dofs > kScalarDofs) {
        AddDelassusOfU(J, dofs, factor, X, W);
      } else {
        ForSize(dofs, [&](auto n) { AddDelassus(J, n, factor.entries, X, W); });
      }
    });
  }

  // W over the trees of a contact, whose Jacobian J has `rows` rows.
  DelassusColumns Columns(std::span<const ContactPart> parts, const double* J, int rows) const {
    ContactColumns contact{parts, J, {}};
    AddTrees(rows, &contact);
    AddComponents<1>({&contact, 1}, rows);
    return contact.W;
  }

  // Adds the uncoupled trees of a contact to its W.
  void AddTrees(int rows, ContactColumns* contact) const {
    for (const ContactPart& part : contact->parts) {
      if (!IsCoupled(part.slot)) AddTree(part.slot, contact->J + rows * part.column, &contact->W);
    }
  }

  // Adds coupled trees to W, component by component, for at most `together` contacts at once.
  template <int together>
  void AddComponents(std::span<ContactColumns> contacts, int rows) const {
    constexpr int kColumns = 3;  // of a contact
    constexpr int kLanes = kNumLanes<double>;
    constexpr int kGroups = (kColumns * together + kLanes - 1) / kLanes;
    thread_local HalfSolves<kGroups> solve;
    for (int component = NextComponent(contacts, -1); component >= 0;
         component = NextComponent(contacts, component)) {
      const HalfSolveFactor factor = model.coupled_trees().factor(component);
      solve.Start(factor.plan);
      for (size_t i = 0; i < contacts.size(); ++i) {
        for (const ContactPart& part : contacts[i].parts) {
          if (ComponentOf(part.slot) != component) continue;
          Lanes4* row = solve.rows(factor, PlaceOf(part));
          const double* block = contacts[i].J + rows * part.column;
          const int n = part.dofs;
          for (int k = 0; k < n; ++k, row += kGroups) {
            for (size_t r = 0; r < kColumns; ++r) {
              const size_t column = kColumns * i + r;
              row[column / kLanes][column % kLanes] += block[r * n + k];
            }
          }
        }
      }
      solve.Run(factor, StopToken());
      for (size_t i = 0; i < contacts.size(); ++i) {
        AddColumns(factor, solve, kColumns * static_cast<int>(i), &contacts[i].W);
      }
    }
  }

  // M of a contact with `rows` rows.
  template <int rows>
  DelassusColumns AngularColumns(std::span<const ContactPart> parts, const double* J,
                                 const ConeInputs& in) const {
    const std::array<double, 3> arms = FrictionArms<rows>(in);
    constexpr size_t kMostOnStack = 3 * 64;
    std::array<double, kMostOnStack> on_stack;
    thread_local GrowingBuffer<double> kept;
    const size_t size = 3 * static_cast<size_t>(parts.back().column + parts.back().dofs);
    double* scaled = size <= kMostOnStack ? on_stack.data() : kept.Reserve(size);
    for (const ContactPart& part : parts) {
      const double* angular = J + rows * part.column + 3 * part.dofs;
      double* to = scaled + 3 * part.column;
      std::fill_n(to, 3 * part.dofs, 0.0);
      for (int row = 0; row < rows - 3; ++row) {
        for (int i = 0; i < part.dofs; ++i) {
          to[row * part.dofs + i] = arms[row] * angular[row * part.dofs + i];
        }
      }
    }
    return Columns(parts, scaled, 3);
  }

  // w of a contact whose W is known.
  template <int rows>
  double OfContact(int contact, const ContactColumns& columns, const auto& in) const {
    double w = Norm(columns.W) / 3.0;
    if constexpr (rows > 3) {
      w = std::max(w, Norm(AngularColumns<rows>(columns.parts, columns.J, in)) / 3.0);
    }
    if (problem.regularization().rule != DelassusRule::kLoadPath) return w;
    const auto [by_load, by_squeeze] = model.load_paths.bounds(contact);
    const double loaded = std::min(w, by_load);
    if (by_squeeze >= loaded) return loaded;
    const auto& [parts, J, W] = columns;
    DelassusColumns low, high;
    AddTree(parts[0].slot, J, &low);
    AddTree(parts[1].slot, J + rows * parts[1].column, &high);
    return std::min(loaded, std::max(by_squeeze, std::min(Norm(low), Norm(high)) / 3.0));
  }

  // dw/dW of a contact, 0 in rows other than those that w is estimated by, and where W and M are 0;
  // dw/dmu in the first row and dw/dmu_j in angular ones; and the distance from the kink in [0, 1].
  template <int rows>
  struct ContactSlope {
    LawMatrix<rows> by_W;
    LawVector<rows> by_friction{};
    double kink_margin{1};
  };
  template <int rows>
  ContactSlope<rows> SlopeOfContact(std::span<const ContactPart> parts, const double* J,
                                    const auto& in) const {
    ContactSlope<rows> slope;
    const DelassusColumns W = Columns(parts, J, rows);
    const double norm = Norm(W);
    if constexpr (rows > 3) {
      const DelassusColumns M = AngularColumns<rows>(parts, J, in);
      const double angular = Norm(M);
      if (angular > 0) slope.kink_margin = RelativeDistance(norm, angular);
      if (angular > norm) {
        const std::array<double, 3> arms = FrictionArms<rows>(in);
        for (int r = 3; r < rows; ++r) {
          for (int s = 3; s < rows; ++s) {
            const double by_M = M.row(r - 3)[s - 3] / (3 * angular);
            slope.by_W(r, s) = arms[r - 3] * arms[s - 3] * by_M;
            const double mu_j = in.angular_friction[r - rows + 3];
            if (mu_j > 0) slope.by_friction[r] += 2 * by_M * M.row(r - 3)[s - 3] / mu_j;
          }
        }
        slope.by_friction[0] = -2 * (angular / 3) / in.mu;
        return slope;
      }
    }
    if (norm == 0) return slope;
    for (int r = 0; r < 3; ++r) {
      for (int s = 0; s < 3; ++s) slope.by_W(r, s) = W.row(s)[r] / (9 * (norm / 3));
    }
    return slope;
  }

  // w of a row, given or the sum over its trees.
  double OfRow(const RowLayout& layout, const RowJacobians& jacobians, int row) const {
    const double given = problem.rows()[layout.order()[row]].given_w * mass_unit;
    if (given != 0) return given;
    double w = 0;
    bool coupled = false;
    for (const RowPart& part : layout.parts_of_row(row)) {
      if (IsCoupled(part.slot)) {
        coupled = true;
        continue;
      }
      const int n = graph.dofs()[part.slot];
      const double* D = model.D().data() + graph.velocity_start()[part.slot];
      const TreeFactor factor = model.A_factor(graph, part.slot);
      WithTreeScratch(n, [&](double* x) {
        std::fill_n(x, n, 0.0);
        for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
          x[layout.dof()[e]] = jacobians.at(e);
        }
        if (is_diagonal()) {
          for (int i = 0; i < n; ++i) w += x[i] * D[i] * (x[i] * D[i]);
          return;
        }
        HalfSolveTree(factor, n, x);
        for (int i = 0; i < n; ++i) w += x[i] * x[i] * factor.entries[i * n + i];
      });
    }
    return coupled ? w + OfCoupledRow(layout, jacobians, row) : w;
  }

  // The share of coupled trees.
  double OfCoupledRow(const RowLayout& layout, const RowJacobians& jacobians, int row) const {
    DelassusColumns W;
    ForComponents(layout, jacobians, row,
                  [&](int, const HalfSolveFactor& factor, HalfSolve& solve) {
                    AddColumns(factor, solve, 0, &W);
                  });
    return W.x[0];
  }

  // Calls body(component, factor, solve) with Y = L^-1 J' for each component of coupled trees that
  // a contact touches, one lane for each of the rows `of` J, in the unit of mass of the problem.
  template <typename Body>
  void ForComponents(std::span<const ContactPart> parts, const double* J, int rows, DelassusRows of,
                     Body&& body) const {
    ForComponents(
        parts,
        [&](const ContactPart& part, Lanes4* to) {
          const int n = part.dofs;
          const double* block = J + rows * part.column + of.begin * n;
          for (int i = 0; i < n; ++i) {
            for (int row = 0; row < of.count(); ++row) to[i][row] += block[row * n + i];
          }
        },
        body);
  }
  // For each component that a row touches, with its Y in the first lane.
  template <typename Body>
  void ForComponents(const RowLayout& layout, const RowJacobians& jacobians, int row,
                     Body&& body) const {
    ForComponents(
        layout.parts_of_row(row),
        [&](const RowPart& part, Lanes4* to) {
          for (int64_t e = part.entry_begin; e < part.entry_end; ++e) {
            to[layout.dof()[e]][0] += jacobians.at(e);
          }
        },
        body);
  }

  // W += Y' Y of three columns of Y from this one on.
  template <int groups>
  void AddColumns(const HalfSolveFactor& factor, const HalfSolves<groups>& solve, int column,
                  DelassusColumns* W) const {
    DelassusColumns sum;
    solve.ForRows(factor.plan, column, [&](Lanes4 y) {
      y[3] = 0;  // of another contact
      sum.x += y * y[0];
      sum.y += y * y[1];
      sum.n += y * y[2];
    });
    const double scale = factor.cholesky.scale() * mass_unit;
    W->x += sum.x * scale;
    W->y += sum.y * scale;
    W->n += sum.n * scale;
  }

  // Each component once, with all its parts. add(part, to) adds a part's block of J' to the rows of
  // its tree.
  template <typename Part, typename Add, typename Body>
  void ForComponents(std::span<const Part> parts, Add&& add, Body&& body) const {
    thread_local HalfSolve solve;
    for (size_t first = 0; first < parts.size(); ++first) {
      const int component = ComponentOf(parts[first].slot);
      const auto is_of_component = [&](const Part& part) {
        return ComponentOf(part.slot) == component;
      };
      if (component < 0 || std::any_of(parts.begin(), parts.begin() + first, is_of_component)) {
        continue;
      }
      const HalfSolveFactor factor = model.coupled_trees().factor(component);
      solve.Start(factor.plan);
      for (const Part& part : parts) {
        if (is_of_component(part)) add(part, solve.rows(factor, PlaceOf(part)));
      }
      solve.Run(factor, StopToken());
      body(component, factor, solve);
    }
  }

  template <typename Part>
  int PlaceOf(const Part& part) const {
    return model.coupled_trees().place_of(graph.islands().tree_of_slot()[part.slot]);
  }

  // The next component that one of the contacts touches, ascending; -1: there is none. W is summed
  // in this order, so that it does not depend on which contacts are taken together.
  int NextComponent(std::span<const ContactColumns> contacts, int component) const {
    int next = -1;
    for (const ContactColumns& contact : contacts) {
      for (const ContactPart& part : contact.parts) {
        const int other = ComponentOf(part.slot);
        if (other > component && (next < 0 || other < next)) next = other;
      }
    }
    return next;
  }

  // A^-1 of one tree, row-major, or the inverse of the diagonal of A, as the rule for w says.
  template <typename Size>
  void Invert(int slot, Size n, double* inverse) const {
    const double* D = model.D().data() + graph.velocity_start()[slot];
    std::fill_n(inverse, n * n, 0.0);
    for (int i = 0; i < n; ++i) {
      double* row = inverse + i * n;
      if (is_diagonal()) {
        row[i] = D[i] * D[i];
      } else {
        row[i] = 1;
        SolveTree(model.A_factor(graph, slot), n, row);
      }
    }
  }
};

}  // namespace sap
