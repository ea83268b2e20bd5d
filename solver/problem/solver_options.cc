#include "solver/problem/solver_options.h"

#include <cmath>
#include <string>

#include "solver/problem/input_checker.h"

namespace sap {

namespace {

constexpr uint32_t kMostRounds = 10'000;

tl::expected<void, ProblemError> CheckTolerance(const char* field, double tolerance) {
  if (tolerance >= 0 && tolerance < 1) return {};
  return tl::unexpected(
      ProblemError{field, -1, "is " + ToText(tolerance) + "; it must be finite and in [0, 1)"});
}

tl::expected<void, ProblemError> CheckCoulomb(const CoulombFriction& coulomb) {
  if (coulomb.max_rounds > kMostRounds) {
    return tl::unexpected(ProblemError{"options.coulomb.max_rounds", -1,
                                       "is " + std::to_string(coulomb.max_rounds) +
                                           "; it must be at most " + std::to_string(kMostRounds)});
  }
  if (!coulomb.tolerance) return {};
  return CheckTolerance("options.coulomb.tolerance", *coulomb.tolerance);
}

tl::expected<void, ProblemError> CheckRest(const Rest& rest) {
  if (rest.horizon > 0 && std::isfinite(rest.horizon)) return {};
  return tl::unexpected(ProblemError{
      "options.rest.horizon", -1, "is " + ToText(rest.horizon) + " s; it must be finite and > 0"});
}

}  // namespace

tl::expected<void, ProblemError> CheckOptions(const SolverOptions& options) {
  auto relative = CheckTolerance("options.relative_tolerance", options.relative_tolerance);
  if (!relative) return relative;
  const double speed = options.absolute_speed_tolerance;
  if (!(speed >= 0 && std::isfinite(speed))) {
    return tl::unexpected(ProblemError{"options.absolute_speed_tolerance", -1,
                                       "is " + ToText(speed) + "; it must be finite and >= 0"});
  }
  if (options.rest) {
    if (auto rest = CheckRest(*options.rest); !rest) return rest;
  }
  return options.coulomb ? CheckCoulomb(*options.coulomb) : tl::expected<void, ProblemError>();
}

}  // namespace sap
