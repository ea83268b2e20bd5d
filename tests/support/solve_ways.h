// The ways in which a certified problem is solved: they must all give the same answer.
#pragma once

#include <algorithm>

#include "solver/solve.h"

namespace sap::test {

struct Way {
  NewtonMethod newton;
  bool islands;
  const char* name;
};

inline constexpr Way kWays[] = {
    {NewtonMethod::kAccelerated, true, "accelerated, by islands"},
    {NewtonMethod::kAccelerated, false, "accelerated, as a whole"},
    {NewtonMethod::kPlain, true, "plain, by islands"},
    {NewtonMethod::kPlain, false, "plain, as a whole"},
};

inline ContactSolution SolveBy(const ContactProblem& problem, NewtonMethod newton, bool islands) {
  return Solve(problem, {.islands = islands, .newton = newton});
}
inline ContactSolution SolveBy(const ContactProblem& problem, const Way& way) {
  return SolveBy(problem, way.newton, way.islands);
}

// Iterations of the island that took most.
inline int MostIterations(const ContactSolution& solution) {
  int most = 0;
  for (const IslandReport& report : solution.islands) most = std::max(most, report.iterations);
  return most;
}

}  // namespace sap::test
