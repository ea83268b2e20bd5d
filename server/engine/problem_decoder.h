// From messages to what the solver reads: a problem as spans over the message's own arrays, nothing
// copied, and options with every rule of the schema checked.
//
// The values inside the arrays are not looked at here: ContactProblem::Make is the one door for
// them.
#pragma once

#include <bitset>
#include <chrono>
#include <optional>
#include <tl/expected.hpp>

#include "sap/v1/problem.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "server/scheduling/client_account.h"
#include "server/service_error.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/solver_options.h"

namespace sap {

// Which fields of ContactSolution to return, by field number.
using ResponseMask = std::bitset<32>;

// How one problem is to be solved and answered.
struct SolveSettings {
  SolverOptions solver;
  std::optional<std::chrono::nanoseconds> time_budget;  // > 0
  ResponseMask response_mask = ResponseMask().set();
};

// The view is valid as long as the message is, unchanged. Fails only on what a view cannot carry:
// an unknown rule.
tl::expected<ContactProblemView, ServiceError> DecodeProblem(const v1::ContactProblem& message);

// Settings from the options of a call; absent fields take their defaults.
tl::expected<SolveSettings, ServiceError> DecodeOptions(const v1::SolveOptions& message,
                                                        int max_iterations);

inline Priority PriorityOf(const v1::SolveOptions& options) {
  return options.priority() == v1::PRIORITY_HIGH ? Priority::kHigh : Priority::kNormal;
}

// Predicted time of a solve on one core [s], from the counts in a message that nobody has checked.
double PredictedWork(const v1::ContactProblem& message);

}  // namespace sap
