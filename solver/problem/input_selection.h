// The inputs of a problem whose derivatives are wanted, by their paths: "contacts.friction",
// "bodies", "applied_impulse".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "solver/problem/input_differential.h"
#include "solver/problem/problem_error.h"

namespace sap {

// Which numbers of its regularization a problem gives; the others have their defaults.
struct GivenRegularization {
#define SAP_NUMBER(name, input) bool name{false};
#include "solver/problem/problem_fields.inc"
};

// Paths of all inputs that have a derivative: those of ForEachNumberInput, then those of
// ForEachInput.
const std::vector<std::string>& InputPaths();

class InputSelection {
 public:
  // No path: applied_impulse, delassus_estimate, and all inputs that the problem has, but not those
  // that are as large as A and J. The name of a group stands for what the problem has there. The
  // error is about `wanted`. The problem need not be valid.
  static tl::expected<InputSelection, ProblemError> Make(std::span<const std::string_view> paths,
                                                         const ContactProblemView& problem,
                                                         const GivenRegularization& given);

  bool applied_impulse() const { return applied_impulse_; }
  bool delassus_estimate() const { return delassus_estimate_; }
  // Takes an input by its place in InputPaths().
  bool wanted(size_t input) const { return wanted_[input]; }
  // Bound on the doubles of its derivative, for a problem that is valid.
  int64_t most_doubles(size_t input) const { return most_doubles_[input]; }

 private:
  bool AddPath(std::string_view path, const std::vector<int64_t>& sizes);

  std::vector<bool> wanted_;
  std::vector<int64_t> most_doubles_;
  bool applied_impulse_{false};
  bool delassus_estimate_{false};
};

}  // namespace sap
