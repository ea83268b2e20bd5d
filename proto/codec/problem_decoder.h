// Decodes messages to solver input: the problem as spans over the message's arrays, without a copy,
// and the options, validated against every rule of the schema.
//
// The values in the arrays are not checked here; ContactProblem is the single place for that.
#pragma once

#include <google/protobuf/duration.pb.h>

#include <chrono>
#include <string>
#include <tl/expected.hpp>

#include "sap/v1/problem.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "solver/engine/engine_error.h"
#include "solver/engine/engine_limits.h"
#include "solver/engine/solve_settings.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/solver_options.h"

namespace sap {

// The numbers, those of the preset where they are absent. Fails with an error that names the field
// where rule or preset is unknown.
tl::expected<Regularization, EngineError> DecodeRegularization(const v1::Regularization& message);

// The view is valid while the message exists unchanged. Fails only on values that a view cannot
// represent: an unknown rule or preset, a reference time step that is none.
tl::expected<ContactProblemView, EngineError> DecodeProblem(const v1::ContactProblem& message);

// A direction of a problem in the shape of one: only its doubles are read, and absent ones are 0.
ContactProblemView DecodeDirection(const v1::ContactProblem& message);

// Decodes options; absent fields have their defaults, and the number of iterations the limit where
// that is lower.
tl::expected<SolveSettings, EngineError> DecodeOptions(
    const v1::SolveOptions& message, const EngineLimits& limits,
    double default_tolerance = SolverOptions().relative_tolerance);

// An error names the field.
tl::expected<std::chrono::nanoseconds, EngineError> DecodeTimeBudget(
    const google::protobuf::Duration& message, const std::string& field = "options.time_budget");

// The options of the method alone; what this version does not know is as by default.
SolverOptions DecodeMethod(const v1::SolveOptions& message);

// Predicted solve time on one core [s], from the counts in an unvalidated message.
double PredictedWork(const v1::ContactProblem& message, const v1::SolveOptions& options = {});

}  // namespace sap
