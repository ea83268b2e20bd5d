// The end of the interior-point method (interior_point.h).
#pragma once

#include "solver/newton/interior_system.h"

namespace sap {

// Newton steps to the optimum from the best iterate; whether they arrived. The first is through y
// of the pair:
//
//   A (v+ - v*) = J' (P(y_p) + P'(y_p) (R^-1 (v_hat - b - J v+) - y_p)),   R y_p = R z - u
//
// The v before it is left in crossed_v. False also if stopped.
bool CrossOver(InteriorSystem* system);

}  // namespace sap
