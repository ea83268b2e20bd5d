// w and dw/dW of the constraints of an island, and the distance of its velocity from a kink.
#pragma once

#include "solver/derivatives/derivative_scope.h"

namespace sap {

// Sets w and w_by_W of adjoint->pools. `with_inverses`: A^-1 as well, without which there are no
// derivatives of w. Returns the kink margin of the island, in [0, 1].
double SetDelassusSlopes(const DerivativeScope& scope, bool with_inverses);

}  // namespace sap
