// The certificate of an iterate: how far its cost can be from the optimum, rounding errors allowed
// for.
//
//   l(v) - min l <= 1/2 |grad l|_{A^-1}^2,   |v - v_opt|_A <= |grad l|_{A^-1}
//
// since l is strongly convex with modulus 1 in the norm of A. The gradient is known up to an error
// e, bounded entry by entry from the sizes of the terms it sums; the bound takes (|grad l|_{A^-1} +
// |e|_{A^-1})^2 / 2.
#pragma once

#include "solver/sap/sap_data.h"

namespace sap {

// Bound on l(v) - min l [J, in the island's unit of mass] at the v that `data` was last evaluated
// at. Infinite where the numbers are not finite. Overwrites everything but v, v_c and gamma. Means
// nothing after a cancellation.
double OptimalityGapBound(const IslandView& view, SapData* data, const StopToken& stop);

}  // namespace sap
