// Scenes of many islands with everything that a problem can have, reproducible by seed.
#pragma once

#include "client/cpp/problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {

// Some ten clusters of trees and bodies, and members without constraints, all in mixed order; in a
// cluster, contacts by Jacobian and between bodies of every law, and rows. Which optional arrays
// are given follows from the seed.
client::Problem RandomIslands(uint64_t seed);

}  // namespace sap::test
