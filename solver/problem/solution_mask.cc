#include "solver/problem/solution_mask.h"

#include <algorithm>
#include <string>

namespace sap {

tl::expected<SolutionMask, ProblemError> ReadMask(std::span<const std::string_view> names) {
  // More than there are fields; each problem of a batch reads them.
  constexpr size_t kMostNames = 32;
  SolutionMask mask;
  if (names.empty()) return mask.set();
  if (names.size() > kMostNames) {
    return tl::unexpected(ProblemError{"options.response_mask.paths", -1,
                                       "has " + std::to_string(names.size()) + " paths; at most " +
                                           std::to_string(kMostNames) + " are accepted"});
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto* const field = std::ranges::find(kSolutionFields, names[i]);
    if (field == std::end(kSolutionFields)) {
      return tl::unexpected(
          ProblemError{"options.response_mask.paths", static_cast<int64_t>(i),
                       "is '" + std::string(names[i].substr(0, 64)) +
                           "'; it must be the name of a field of ContactSolution"});
    }
    mask.set(field - std::begin(kSolutionFields));
  }
  return mask;
}

}  // namespace sap
