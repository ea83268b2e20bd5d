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
#pragma once

#include <limits>

#include "solver/newton/sap_data.h"

namespace sap {

inline constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();
// Rounding steps from a product J v to the terms of gamma, beyond those of the product: 2 of v_hat,
// 1 of the difference, 2 of the product with 1/R_t, 3 of the norm, 4 of the product with mu_hat.
inline constexpr int kVelocitySteps = 12;

// Bound on l(v) - min l [J, in the island's unit of mass] at the v at which `data` was evaluated
// last. Infinite where the numbers are not finite, or A is too ill-conditioned for any bound. Means
// nothing after a cancellation.
double OptimalityGapBound(const IslandView& view, const SapData& data, const StopToken& stop,
                          SapScratch* scratch);

}  // namespace sap
