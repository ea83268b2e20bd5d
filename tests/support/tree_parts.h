// The same problem with trees cut into parts, which couplings of their dynamics matrices join.
#pragma once

#include <vector>

#include "tests/support/problem_arrays.h"

namespace sap::test {

// Cuts every tree into parts of `sizes` dofs, in turn, the last of the dofs that are left.
// Velocities keep their order; contacts name their trees in `parts`. The problem must not have a
// rule LOAD_PATH.
ProblemArrays InParts(const ProblemArrays& whole, const std::vector<int>& sizes);

}  // namespace sap::test
