#include "solver/engine/solve_settings.h"

#include <algorithm>
#include <utility>

#include "solver/problem/input_checker.h"

namespace sap {

tl::expected<SolveSettings, EngineError> CheckSettings(const GivenSettings& given,
                                                       const EngineLimits& limits) {
  SolveSettings settings{.solver = given.solver};
  if (const auto checked = CheckOptions(given.solver); !checked) {
    return RefuseField(checked.error());
  }
  const auto iterations = static_cast<uint32_t>(given.solver.max_iterations);
  if (iterations > static_cast<uint32_t>(limits.max_iterations)) {
    return RefuseField("options.max_iterations", "is " + std::to_string(iterations) +
                                                     "; it must be at most " +
                                                     std::to_string(limits.max_iterations));
  }
  settings.solver.max_factor_bytes = std::min(
      given.solver.max_factor_bytes, static_cast<size_t>(limits.max_solve_memory_mib) << 20);
  if (given.time_budget) {
    const auto budget = CheckTimeBudget(*given.time_budget);
    if (!budget) return tl::unexpected(budget.error());
    settings.time_budget = *budget;
  }
  const auto mask = ReadMask(given.mask);
  if (!mask) return RefuseField(mask.error());
  settings.mask = *mask;
  return settings;
}

tl::expected<std::chrono::nanoseconds, EngineError> CheckTimeBudget(std::chrono::nanoseconds budget,
                                                                    const std::string& field) {
  constexpr std::chrono::hours kLongest{24 * 366};
  if (budget.count() <= 0) {
    const double seconds = std::chrono::duration<double>(budget).count();
    return RefuseField(field, "is " + ToText(seconds) + " s; it must be positive");
  }
  return std::min<std::chrono::nanoseconds>(budget, kLongest);
}

}  // namespace sap
