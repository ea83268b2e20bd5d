// How a problem is to be solved, within the limits of whoever answers the call.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "solver/engine/engine_error.h"
#include "solver/engine/engine_limits.h"
#include "solver/problem/solution_mask.h"
#include "solver/problem/solver_options.h"

namespace sap {

// Settings as a caller gives them.
struct GivenSettings {
  // max_iterations is a uint32_t of the wire: a negative number is a large one.
  SolverOptions solver{};
  std::optional<std::chrono::nanoseconds> time_budget{};
  std::vector<std::string_view> mask{};  // names of fields; none: all
};

// Checked settings.
struct SolveSettings {
  SolverOptions solver{};
  std::optional<std::chrono::nanoseconds> time_budget{};  // from the arrival of the call
  SolutionMask mask = SolutionMask().set();               // fields of the solution to return
};

// All rules of the options of a call. An error names the field.
tl::expected<SolveSettings, EngineError> CheckSettings(const GivenSettings& given,
                                                       const EngineLimits& limits);

// A budget must be positive. It is capped at one year, which the clock can represent.
tl::expected<std::chrono::nanoseconds, EngineError> CheckTimeBudget(
    std::chrono::nanoseconds budget, const std::string& field = "options.time_budget");

}  // namespace sap
