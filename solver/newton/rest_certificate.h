// The certificate of rest: how far an island can move within a horizon T by steps no longer than
// this one, if frames, target velocities, loads and the set of constraints stay as they are.
//
// Divided by dt, the cost of a step is 1/2 |v - v_0|_A^2 / dt + Phi(v) up to a constant, with
//
//   Phi(v) = -tau' v + sum_i f_i(v_c,i) / dt,   tau = A (v* - v_0) / dt
//
// where dt only scales R. Steps are then proximal points of one convex function, and those never
// move two velocities apart in the norm of A [Rockafellar 1976, Section 1]. Any w is a fixed point
// of the steps of Phi(v) - grad Phi(w)' v, so that after steps that take t together, from v_0
//
//   |v(t) - w|_A <= |v_0 - w|_A + t |grad Phi(w)|_{A^-1}
//
// With w = v, the velocity that is returned, converged or not:
//
//   a     = |A (v - v_0) - grad l|_{A^-1} / dt = |A (v* - v_0) + J' gamma|_{A^-1} / dt
//   drift = max over trees of  T |v_t| + (T |v - v_0|_A + T (T + dt) / 2 a) s_t
//
//   rigid body   |v_t| = |v_t|_{A_t} / sqrt(m), s = 1 / sqrt(m): root mean square displacement of
//                its mass [m]
//   other tree   of each degree of freedom j, |v_j| and s = sqrt((A^-1)_jj), in its unit
//
// Rounding errors are allowed for as in accuracy_certificate.h, from which that of the gradient is.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "solver/newton/dual_norm.h"
#include "solver/newton/sap_data.h"

namespace sap {

// Adds what a tree that is not coupled has of the sums. `change` is A (v - v_0), D = diag(A)^-1/2,
// `inverse_diagonal` the diagonal of A^-1 by the factor, which becomes a bound on that of A^-1.
// Scratch of n.
//
// A (v - v_0) is off by e with |e_i| <= (n + 4) u sum_j |A_ij| (|v_j| + |v_0,j|). The matrix is
// positive definite, so that |A_ij| D_i D_j <= 1, and |D e| and (v - v_0)' e are bounded by sums.
template <typename Scalar, typename Size>
inline void AddRest(const FactoredTree<Scalar, Size>& tree, const Scalar* D, const Scalar* v,
                    const Scalar* v_0, const Scalar* change, const Scalar* gradient,
                    Scalar* inverse_diagonal, Scalar* scratch, RestSums<Scalar>* sums) {
  const auto& [A, L, n, ends] = tree;
  Scalar* x = scratch;
  Scalar change2{}, size{}, difference_size{}, weighted_trace{};
  for (int i = 0; i < n; ++i) {
    const Scalar root = A[i * n + i] * D[i];
    const Scalar difference = v[i] - v_0[i];
    change2 += difference * change[i];
    size += root * (Abs(v[i]) + Abs(v_0[i]));
    difference_size += root * Abs(difference);
    weighted_trace += A[i * n + i] * inverse_diagonal[i];
    x[i] = change[i] - gradient[i];
  }
  if constexpr (std::is_same_v<Scalar, double>) {
    HalfSolveTree(TreeFactor{L, ends}, n, x);
  } else {
    SolveUnitLower(L, n, x);
  }
  const Scalar inflation = Inflation(n, weighted_trace);
  Scalar unbalanced2{};
  for (int i = 0; i < n; ++i) {
    unbalanced2 += x[i] * x[i] * L[i * n + i];
    inverse_diagonal[i] *= inflation;
  }
  const Scalar error = (n + 4) * kUnitRoundoff * size;  // D_i |e_i| of any i
  sums->change2 += change2 + 2.0 * difference_size * error;
  sums->unbalanced2 += inflation * unbalanced2;
  // |e|_{A^-1}^2 <= |D e|^2 trace((D A D)^-1).
  sums->error2 += inflation * weighted_trace * (static_cast<double>(n) * error * error);
}

// The part of the drift that all trees of an island share, T |v - v_0|_A + T (T + dt) / 2 a.
// `gradient_error` is the bound on |e|_{A^-1} of the gradient, `terms` the length of each sum.
template <typename Scalar>
inline Scalar RestReach(const RestSums<Scalar>& sums, const Scalar& gradient_error, double horizon,
                        double time_step, int terms) {
  constexpr int kSteps = 64;  // rounding steps of the drift, generously counted
  const Scalar unbalanced = Sqrt(sums.unbalanced2) + Sqrt(sums.error2) + gradient_error;
  const double growth = 0.5 * horizon * (horizon / time_step + 1);  // T (T + dt) / 2 / dt
  return (1 + (kSteps + terms) * kUnitRoundoff) *
         (horizon * Sqrt(sums.change2) + growth * unbalanced);
}

// The drift of a rigid body with this momentum A v.
template <typename Scalar, typename Size>
inline Scalar DriftOfBody(const Scalar* A, Size n, const Scalar* v, const Scalar* momentum,
                          double horizon, const Scalar& reach) {
  Scalar v2{}, size{};
  for (int i = 0; i < n; ++i) {
    v2 += v[i] * momentum[i];
    size += A[i * n + i] * v[i] * v[i];
  }
  // |v|' |A| |v| <= n sum of A_ii v_i^2.
  v2 += (2 * n + 4) * n * kUnitRoundoff * size;
  return (horizon * Sqrt(v2) + reach) / Sqrt(A[0]);
}

// The largest drift of the degrees of freedom of another tree.
template <typename Scalar, typename Size>
inline Scalar DriftOfDofs(Size n, const Scalar* v, const Scalar* inverse_diagonal, double horizon,
                          const Scalar& reach) {
  Scalar largest{};
  for (int i = 0; i < n; ++i) {
    const Scalar drift = horizon * Abs(v[i]) + reach * Sqrt(inverse_diagonal[i]);
    largest = largest < drift ? drift : largest;
  }
  return largest;
}

// The drift of an island at the v at which `data` was evaluated last. Right after
// OptimalityGapBound, with its gradient_error. Infinite where numbers are not finite, v_0 is not
// given or A is too ill-conditioned for any bound. Means nothing after a cancellation.
double RestDrift(const IslandView& view, double horizon, double gradient_error,
                 const StopToken& stop, const SapData& data, SapScratch* scratch);

}  // namespace sap
