// Random problems with constraints of every kind: those of RandomTreesInContact (random_problem.h),
// the law of each contact drawn anew, and rows.
#pragma once

#include "tests/support/random_problem.h"

namespace sap::test {

struct RandomConstraints {
  TreesInContact contacts{};
  int rows{15};
  int max_entries{5};  // of a row
};

// Which optional arrays are given follows from the seed as well.
ProblemArrays RandomConstraintsOfEveryKind(uint64_t seed, const RandomConstraints& parameters = {});

}  // namespace sap::test
