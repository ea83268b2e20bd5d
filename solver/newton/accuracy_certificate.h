// The certificate of an iterate: how far its cost can be from the optimum, rounding errors allowed
// for.
//
//   l(v) - min l <= 1/2 |grad l|_{A^-1}^2,   |v - v_opt|_A <= |grad l|_{A^-1}
//
// since l is strongly convex with modulus 1 in the norm of A. The gradient is known up to an error
// e, bounded entry by entry from the sizes of the terms it sums. A^-1 is known by a factor
// A' = L D L' that is itself rounded:
//
//   |A - A'|_ij <= (3 n + 1) u sqrt(A_ii A_jj)
//   |x|_{A^-1}^2 <= |x|_{A'^-1}^2 / (1 - rho),   rho = (3 n + 1) n u sum_i A_ii (A'^-1)_ii
//
// by backward analysis of the factorization and of a solve, with the unit roundoff u.
// The bound is (|grad l| + |e|)^2 / (2 (1 - rho)), the norms by A'^-1 and rho tree by tree.
//
// Coupled trees have the factor of their component and no inverse. There the trace is estimated
// from three vectors of signs, with a margin, and |e|_{A^-1}^2 <= |D e|^2 / lambda_min(D A D), with
// D = diag(A)^-1/2, is at most |D e|^2 times it.
//
// Where no cost can be negative min l >= 0, and l(v), its own rounding errors added, is a bound as
// well. The smaller one is taken.
#pragma once

#include <span>

#include "solver/newton/sap_data.h"

namespace sap {

// Margin for a trace estimated from three vectors: where one eigenvalue makes up all of it, one
// estimate in sixteen is less than an eighth.
inline constexpr double kTraceMargin = 8;

// error := bounds on the rounding errors of A (v - from) of a coupled tree, the products with those
// coupled with it included. Returns that of their share of 1/2 |v - from|_A^2.
double CoupledMomentumErrors(const IslandView& view, const SapData& data,
                             std::span<const double> from, int slot, double* error);

// |grad l|_{A^-1} at the v at which `data` was evaluated last, rounding errors not allowed for.
// What is found of coupled trees is kept in `data`.
double NormOfGradient(const IslandView& view, const StopToken& stop, SapData* data);

// Bound on l(v) - min l [J, in the island's unit of mass] at the v at which `data` was evaluated
// last, with that cost. Infinite where the numbers are not finite, or A is too ill-conditioned for
// any bound. Means nothing after a cancellation.
//
// Where the certificate of rest follows, `gradient_error` is not null: the bound on |e|_{A^-1} is
// put there, and (A^-1)_jj of trees that are not coupled into scratch->inverse_diagonal.
template <typename View>
double OptimalityGapBound(const View& view, double cost, const StopToken& stop, SapData* data,
                          SapScratch* scratch, double* gradient_error = nullptr);

// Adds |data->gradient|_{A^-1} squared and that of the bound on its rounding errors, where it is
// A (v - v*) - J' gamma with the gamma in `data`, which are wrong by scratch->impulse_errors.
// `inverse_diagonal`: set to bounds on that of A^-1 of uncoupled trees, by velocity, or null.
template <typename View>
void AddDualNormsOfIsland(const View& view, const StopToken& stop, SapData* data,
                          SapScratch* scratch, double* inverse_diagonal,
                          CertificateSums<double>* sums);

}  // namespace sap
