#include "solver/problem/solver_options.h"

#include <cmath>

#include "solver/problem/input_checker.h"

namespace sap {

tl::expected<void, ProblemError> CheckTolerances(const SolverOptions& options) {
  const double relative = options.relative_tolerance;
  if (!(relative >= 0 && relative < 1)) {
    return tl::unexpected(
        ProblemError{"options.relative_tolerance", -1,
                     "is " + ToText(relative) + "; it must be finite and in [0, 1)"});
  }
  const double speed = options.absolute_speed_tolerance;
  if (!(speed >= 0 && std::isfinite(speed))) {
    return tl::unexpected(ProblemError{"options.absolute_speed_tolerance", -1,
                                       "is " + ToText(speed) + "; it must be finite and >= 0"});
  }
  return {};
}

}  // namespace sap
