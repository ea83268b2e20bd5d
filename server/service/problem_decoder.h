// Decodes messages to solver input: the problem as spans over the message's arrays, without a copy,
// and the options, validated against every rule of the schema.
//
// The values in the arrays are not checked here; ContactProblem is the single place for that.
#pragma once

#include <google/protobuf/duration.pb.h>

#include <bitset>
#include <chrono>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "sap/v1/problem.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "server/scheduling/client_account.h"
#include "server/service_error.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/solver_options.h"

namespace sap {

// Fields of ContactSolution to return, indexed by field number.
using ResponseMask = std::bitset<32>;

// Decoded options of one problem.
struct SolveSettings {
  SolverOptions solver;
  std::optional<std::chrono::nanoseconds> time_budget;  // > 0
  ResponseMask response_mask = ResponseMask().set();
};

// The view is valid while the message exists unchanged. Fails only on values that a view cannot
// represent: an unknown rule.
tl::expected<ContactProblemView, ServiceError> DecodeProblem(const v1::ContactProblem& message);

// A direction of a problem in the shape of one: only its doubles are read, and absent ones are 0.
ContactProblemView DecodeDirection(const v1::ContactProblem& message);

// Decodes options; absent fields have their defaults.
tl::expected<SolveSettings, ServiceError> DecodeOptions(const v1::SolveOptions& message,
                                                        int max_iterations);

// An INVALID_ARGUMENT error about what the solver finds at fault in the message of that name, as in
// "tangents[1].".
inline tl::unexpected<ServiceError> RefuseField(const ProblemError& error,
                                                const std::string& within = "") {
  std::string field = within + error.field;
  if (error.index >= 0) field.append("[").append(std::to_string(error.index)).append("]");
  return RefuseField(field, error.reason);
}

// An error names the field.
tl::expected<std::chrono::nanoseconds, ServiceError> DecodeTimeBudget(
    const google::protobuf::Duration& message, const std::string& field = "options.time_budget");

inline Priority PriorityOf(const v1::SolveOptions& options) {
  return options.priority() == v1::PRIORITY_HIGH ? Priority::kHigh : Priority::kNormal;
}

// Predicted solve time on one core [s], from the counts in an unvalidated message.
double PredictedWork(const v1::ContactProblem& message);

}  // namespace sap
