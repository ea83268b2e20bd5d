// W = J A^-1 J' of one contact, by its three linear rows, from which w = |W|_F / 3.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "solver/cholesky/dense_cholesky.h"
#include "solver/model/sap_model.h"
#include "solver/pools/jacobian_kernels.h"
#include "solver/pools/tree_scratch.h"

namespace sap {

// The three columns of W = J A^-1 J', one lane per row of J; the fourth lane stays zero.
struct DelassusColumns {
  Lanes4 x{}, y{}, n{};
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

// The same by the diagonal of A alone, which is D^-2.
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

// W += that of one tree, as the rule for w has it.
inline void AddDelassusOf(const ContactProblem& problem, const ConstraintGraph& graph,
                          const SapModel& model, int slot, const double* J, DelassusColumns* W) {
  const int dofs = graph.dofs()[slot];
  if (problem.regularization().rule == DelassusRule::kDiagonal) {
    AddDiagonalDelassus(J, dofs, model.D().data() + graph.velocity_start()[slot], W);
    return;
  }
  WithTreeScratch(static_cast<size_t>(kNumLanes<double>) * dofs, [&](double* scratch) {
    ForSize(dofs, [&](auto n) {
      AddDelassus(J, n, model.A_factor(graph, slot), reinterpret_cast<Lanes4*>(scratch), W);
    });
  });
}

// Over both trees of a pair; J_high is null where there is one.
inline DelassusColumns Delassus(const ContactProblem& problem, const ConstraintGraph& graph,
                                const SapModel& model, const ContactPair& pair, const double* J_low,
                                const double* J_high) {
  DelassusColumns W;
  AddDelassusOf(problem, graph, model, pair.low, J_low, &W);
  if (J_high != nullptr) AddDelassusOf(problem, graph, model, pair.high, J_high, &W);
  return W;
}

// A^-1 of one tree, row-major, or that of the diagonal of A alone, as the rule has it for w.
template <typename Size>
inline void DelassusInverse(const ContactProblem& problem, const double* factor, const double* D,
                            Size n, double* inverse) {
  std::fill_n(inverse, n * n, 0.0);
  for (int i = 0; i < n; ++i) {
    double* row = inverse + i * n;
    if (problem.regularization().rule == DelassusRule::kDiagonal) {
      row[i] = D[i] * D[i];
    } else {
      row[i] = 1;
      SolveTree(factor, n, row);
    }
  }
}

// Near-rigid R over w.
inline double NearRigid(double beta) {
  return beta * beta / (4.0 * std::numbers::pi * std::numbers::pi);
}

}  // namespace sap
