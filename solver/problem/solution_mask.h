// Which fields of a solution are asked for, by their names on the wire.
#pragma once

#include <bitset>
#include <iterator>
#include <span>
#include <string_view>
#include <tl/expected.hpp>

#include "solver/problem/problem_error.h"

namespace sap {

inline constexpr std::string_view kSolutionFields[] = {
#define SAP_OUTPUT(name, ...) #name,
#include "solver/problem/solution_fields.inc"
    "delassus_estimate", "cost", "island_of_tree", "islands", "timings"};

// In the order of kSolutionFields.
using SolutionMask = std::bitset<std::size(kSolutionFields)>;

// The fields of these names; all if there are none. An error names options.response_mask.
tl::expected<SolutionMask, ProblemError> ReadMask(std::span<const std::string_view> names);

}  // namespace sap
