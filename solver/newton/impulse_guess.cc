#include "solver/newton/impulse_guess.h"

#include <algorithm>

namespace sap {

bool HasImpulseGuess(const IslandView& view) {
  const ContactProblem& problem = view.model.problem();
  if (problem.guess_impulse().empty() && problem.guess_angular_impulse().empty() &&
      problem.guess_row_impulse().empty()) {
    return false;
  }
  bool has = false;
  ForInequalities(view, [&](auto pool) {
    const PoolRange range = view.range(pool);
    for (int i = range.begin; i < range.end && !has; ++i) {
      has = std::ranges::any_of(ImpulseGuess(view, pool, i), [](double x) { return x != 0; });
    }
  });
  return has;
}

}  // namespace sap
