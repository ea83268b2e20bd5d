// Reads the structs of a caller of the C interface: arrays become spans, nothing is copied.
//
// A struct of the caller may be shorter or longer than this library knows it, see "Stability" in
// sap_islands.h.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/sap_islands.h"
#include "client/cpp/connect_options.h"
#include "client/cpp/derivatives.h"
#include "client/cpp/solve_options.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/input_selection.h"
#include "solver/problem/solver_options.h"

namespace sap::c {

template <typename Value>
using Read = tl::expected<Value, ProblemError>;

// A problem as given: valid while the arrays of the caller are.
struct GivenProblem {
  ContactProblemView view;
  GivenRegularization regularization;
};

// Null is an error: every call needs a problem.
Read<GivenProblem> ReadProblem(const sap_problem* problem);

// A direction of a problem: absent numbers are 0, not their defaults.
Read<ContactProblemView> ReadDirection(const sap_problem* direction);

Read<std::chrono::nanoseconds> ReadTimeBudget(double time_budget_s, const char* field);

// A time to wait, which may be 0; null: none was given.
Read<Wait> ReadTime(const double* seconds, const char* field);

// The struct in the size that this library knows, unchecked; null: the empty one.
Read<sap_options> TakeOptions(const sap_options* options);
Read<sap_coulomb_friction> TakeCoulomb(const sap_coulomb_friction* coulomb);
Read<sap_rest> TakeRest(const sap_rest* rest);

// Null: the defaults.
Read<client::SolveOptions> ReadOptions(
    const sap_options* options, double default_tolerance = SolverOptions().relative_tolerance);

// A request for derivatives: valid while the arrays of the caller are.
struct GivenDifferentiation {
  client::DifferentiateView view;
  InputSelection wanted;
};

Read<GivenDifferentiation> ReadDifferentiation(const sap_differentiation* given);

// Null: the defaults. Settings whose deadline has passed are an error.
tl::expected<CallSettings, Error> ReadCall(const sap_call* call);

Read<client::ConnectOptions> ReadConnectOptions(const sap_connect_options* options);

// A solution as given: valid while the arrays of the caller are.
struct GivenSolution {
  sap_solution solution;
  sap_island_reports islands;
};

// The structs in the size that this library knows. Null is an error; arrays are checked.
Read<GivenSolution> ReadSolution(const sap_solution* solution);
Read<sap_record> ReadRecord(const sap_record* record);
Read<sap_rest_rules> ReadRestRules(const sap_rest_rules* rules);
Read<sap_error> ReadError(const sap_error* error);

// Lists of a batch, of `count` entries: answers that are different ones. An input at NULL is an
// error of its own answer.
Status CheckBatch(int64_t count, const void* const* inputs, const char* field,
                  sap_answer* const* answers);

}  // namespace sap::c
