// Random problems with constraints of every kind: those of RandomTreesInContact (random_problem.h),
// the law of each contact drawn again, and rows.
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

// Small problems with all that is legal at once: the above, with bodies and their contacts, coupled
// trees, both rules that do without loads, R or w given, and contacts that lie on an axis of
// rotation, nearly do, or are moved by nothing.
ProblemArrays RandomLegalProblem(uint64_t seed);

// Contacts of the similar law of Hunt & Crossley with dt^2 k w of 1e3 to 1e10, and rows.
ProblemArrays RandomStiffContacts(uint64_t seed);

}  // namespace sap::test
