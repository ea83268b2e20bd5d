#include "client/cpp/transport/message_conversion.h"

#include <algorithm>
#include <utility>

#include "client/cpp/backend/call_types.h"
#include "proto/codec/problem_decoder.h"
#include "proto/codec/problem_messages.h"
#include "proto/codec/solution_encoder.h"
#include "solver/problem/input_checker.h"

namespace sap::client {
namespace {

using google::protobuf::RepeatedField;

template <typename Value>
void Copy(std::span<const Value> values, RepeatedField<Value>* field) {
  field->Assign(values.begin(), values.end());
}
template <typename Value>
void Copy(const std::vector<Value>& values, RepeatedField<Value>* field) {
  Copy(std::span(values), field);
}

template <typename Value>
std::vector<Value> Copy(const RepeatedField<Value>& field) {
  return {field.begin(), field.end()};
}

// The enum of the wire starts at 1, since 0 is UNSPECIFIED.
static_assert(static_cast<int>(SolveStatus::kConverged) + 1 == v1::ISLAND_STATUS_CONVERGED);
static_assert(static_cast<int>(SolveStatus::kStalledAtRoundoff) + 1 ==
              v1::ISLAND_STATUS_STALLED_AT_ROUNDOFF);
static_assert(static_cast<int>(SolveStatus::kIterationLimit) + 1 ==
              v1::ISLAND_STATUS_ITERATION_LIMIT);
static_assert(static_cast<int>(SolveStatus::kDeadline) + 1 == v1::ISLAND_STATUS_DEADLINE);
static_assert(static_cast<int>(SolveStatus::kCancelled) + 1 == v1::ISLAND_STATUS_CANCELLED);
static_assert(static_cast<int>(SolveStatus::kNumericalFailure) + 1 ==
              v1::ISLAND_STATUS_NUMERICAL_FAILURE);
static_assert(static_cast<int>(SolveStatus::kCoulombLimit) + 1 == v1::ISLAND_STATUS_COULOMB_LIMIT);

tl::unexpected<Error> Malformed(const std::string& what) {
  return tl::unexpected(Error{ErrorCode::kInternal, "the response of the server has " + what, ""});
}

// Whether the array has a number for each island, or is empty and may be.
template <typename Number, typename Value>
bool ReadReports(const RepeatedField<Value>& field, Sent sent, Number Island::*number,
                 std::vector<Island>* islands) {
  if (field.empty() && sent != Sent::kAlways) return true;
  if (field.size() != static_cast<int>(islands->size())) return false;
  for (int i = 0; i < field.size(); ++i) (*islands)[i].*number = static_cast<Number>(field[i]);
  return true;
}

tl::expected<std::vector<Island>, Error> IslandsFrom(const v1::IslandReports& message) {
  std::vector<Island> islands(message.status_size());
#define SAP_REPORT(type, name, sent, none)                                 \
  if (!ReadReports(message.name(), Sent::sent, &Island::name, &islands)) { \
    return Malformed("island arrays of different lengths");                \
  }
#include "solver/problem/solution_fields.inc"
  for (size_t i = 0; i < islands.size(); ++i) {
    const int status = message.status(static_cast<int>(i));
    if (status < v1::ISLAND_STATUS_CONVERGED || status > v1::ISLAND_STATUS_COULOMB_LIMIT) {
      return Malformed("an island status that this version does not know");
    }
    islands[i].status = static_cast<SolveStatus>(status - 1);
  }
  for (const uint32_t i : message.swept()) {
    if (i >= islands.size()) return Malformed("an island that is not there");
    islands[i].swept = true;
  }
  return islands;
}

static_assert(static_cast<int>(AdjointStatus::kDifferentiated) + 1 ==
              v1::ADJOINT_STATUS_DIFFERENTIATED);
static_assert(static_cast<int>(AdjointStatus::kInaccurate) + 1 == v1::ADJOINT_STATUS_INACCURATE);
static_assert(static_cast<int>(AdjointStatus::kDeadline) + 1 == v1::ADJOINT_STATUS_DEADLINE);
static_assert(static_cast<int>(AdjointStatus::kNumericalFailure) + 1 ==
              v1::ADJOINT_STATUS_NUMERICAL_FAILURE);

// Accepts a reference time step of 0, as in derivatives.
tl::expected<Problem, Error> ProblemFrom(const v1::ContactProblem& message) {
  const auto regularization = DecodeRegularization(message.regularization());
  if (!regularization) return FromEngine(regularization.error());
  Problem problem;
  problem.time_step = message.time_step();
  ForEachMessageArray([](const auto& field, auto& values) { values = Copy(field); }, message,
                      problem);
  problem.regularization = *regularization;
  return problem;
}

// In a derivative a number that is absent is 0.
tl::expected<ProblemDerivative, Error> DerivativeFrom(const v1::ContactProblem& message) {
  auto problem = ProblemFrom(message);
  if (!problem) return tl::unexpected(problem.error());
  ProblemDerivative derivative;
  static_cast<Problem&>(derivative) = std::move(*problem);
  derivative.regularization.rule = DelassusRule::kFull;
#define SAP_NUMBER(name, input) derivative.regularization.name = message.regularization().name();
#include "solver/problem/problem_fields.inc"
  return derivative;
}

Error ErrorFrom(const v1::Failure& failure) {
  return {FromCode(failure.code()), failure.message(), failure.field(), failure.reason(),
          FromMessage(failure.retry_delay())};
}

v1::NewtonMethod ToMessage(NewtonMethod method) {
  switch (method) {
    case NewtonMethod::kPlain:
      return v1::NEWTON_METHOD_PLAIN;
    case NewtonMethod::kAccelerated:
      return v1::NEWTON_METHOD_ACCELERATED;
    case NewtonMethod::kGaussSeidel:
      return v1::NEWTON_METHOD_GAUSS_SEIDEL;
  }
  return v1::NEWTON_METHOD_UNSPECIFIED;
}

v1::InteriorPoint ToMessage(InteriorPoint choice) {
  switch (choice) {
    case InteriorPoint::kAuto:
      return v1::INTERIOR_POINT_AUTO;
    case InteriorPoint::kNever:
      return v1::INTERIOR_POINT_NEVER;
    case InteriorPoint::kAlways:
      return v1::INTERIOR_POINT_ALWAYS;
  }
  return v1::INTERIOR_POINT_UNSPECIFIED;
}

}  // namespace

void ToMessage(const SolveOptions& options, v1::SolveOptions* message) {
  message->set_relative_tolerance(options.solver.relative_tolerance);
  message->set_absolute_speed_tolerance(options.solver.absolute_speed_tolerance);
  // Absent: the server's limit where that is lower.
  if (options.solver.max_iterations != SolverOptions().max_iterations) {
    message->set_max_iterations(static_cast<uint32_t>(options.solver.max_iterations));
  }
  message->set_islands(options.solver.islands);
  message->set_newton(ToMessage(options.solver.newton));
  message->set_interior_point(ToMessage(options.solver.interior_point));
  if (options.solver.coulomb) {
    const CoulombFriction& coulomb = *options.solver.coulomb;
    message->mutable_coulomb()->set_max_rounds(coulomb.max_rounds);
    if (coulomb.tolerance) message->mutable_coulomb()->set_tolerance(*coulomb.tolerance);
  }
  if (options.solver.rest) message->mutable_rest()->set_horizon(options.solver.rest->horizon);
  if (options.time_budget) ToMessage(*options.time_budget, message->mutable_time_budget());
  if (options.priority == Priority::kHigh) message->set_priority(v1::PRIORITY_HIGH);
  for (const std::string& path : options.response_mask) {
    message->mutable_response_mask()->add_paths(path);
  }
}

void ToMessage(const Solution& solution, v1::ContactSolution* message) {
  EncodeSolution(solution, SolutionMask().set(), message);
  v1::PhaseTimings* timings = message->mutable_timings();
  timings->set_decode_s(solution.timings.decode_s);
  timings->set_queue_s(solution.timings.queue_s);
  timings->set_islands_s(solution.timings.islands_s);
  timings->set_solve_s(solution.timings.solve_s);
  timings->set_encode_s(solution.timings.encode_s);
}

void ToMessage(std::chrono::nanoseconds time, google::protobuf::Duration* message) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  message->set_seconds(seconds.count());
  message->set_nanos(static_cast<int32_t>((time - seconds).count()));
}

void ToMessage(const DifferentiateView& request, v1::DifferentiateRequest* message) {
  ToMessage(request.problem, message->mutable_problem());
  v1::Regularization* numbers = message->mutable_problem()->mutable_regularization();
#define SAP_NUMBER(name, is_input) \
  if ((is_input) && !request.given.name) numbers->clear_##name();
#include "solver/problem/problem_fields.inc"
  ToMessage(request.solve, message->mutable_options());
  Copy(request.derivatives.velocity, message->mutable_velocity());
  for (const sap::Cotangent& cotangent : request.derivatives.cotangents) {
    v1::Cotangent* arrays = message->add_cotangents();
#define SAP_OUTPUT(name, ...) Copy(cotangent.name, arrays->mutable_##name());
#include "solver/problem/solution_fields.inc"
    arrays->set_cost(cotangent.cost);
  }
  for (const ContactProblemView& direction : request.derivatives.directions) {
    ToMessage(direction, message->add_tangents());
  }
  for (const std::string& path : request.wanted) message->mutable_wanted()->add_paths(path);
  message->set_hold_delassus(request.derivatives.hold_delassus);
}

void ToMessage(const Error& error, v1::Failure* message) {
  message->set_code(static_cast<int>(error.code));
  message->set_message(error.message);
  message->set_field(error.field);
}

tl::expected<Problem, Error> FromMessage(const v1::ContactProblem& message) {
  const v1::Regularization& given = message.regularization();
  if (given.has_reference_time_step()) {
    const auto checked = CheckReferenceTimeStep(given.reference_time_step());
    if (!checked) {
      const ProblemError& error = checked.error();
      return tl::unexpected(Error{ErrorCode::kInvalidArgument, error.Message(), error.field});
    }
  }
  return ProblemFrom(message);
}

tl::expected<Solution, Error> FromMessage(const v1::ContactSolution& message) {
  auto islands = IslandsFrom(message.islands());
  if (!islands) return tl::unexpected(islands.error());
  Solution solution;
#define SAP_OUTPUT(name, ...) solution.name = Copy(message.name());
#include "solver/problem/solution_fields.inc"
  solution.delassus_estimate = Copy(message.delassus_estimate());
  solution.cost = message.cost();
  solution.island_of_tree = Copy(message.island_of_tree());
  solution.islands = std::move(*islands);
  solution.timings = {.decode_s = message.timings().decode_s(),
                      .queue_s = message.timings().queue_s(),
                      .islands_s = message.timings().islands_s(),
                      .solve_s = message.timings().solve_s(),
                      .encode_s = message.timings().encode_s()};
  return solution;
}

ServerInfo FromMessage(const v1::GetServerInfoResponse& message) {
  ServerInfo info{.version = message.version(),
                  .instruction_set = message.instruction_set(),
                  .boot_id = message.boot_id(),
                  .processors = message.processors(),
                  .solver_threads = message.solver_threads()};
#define SAP_LIMIT(type, name, ...) info.name = message.limits().name();
#include "solver/engine/server_limits.inc"
  return info;
}

std::chrono::nanoseconds FromMessage(const google::protobuf::Duration& message) {
  return std::chrono::seconds(message.seconds()) + std::chrono::nanoseconds(message.nanos());
}

tl::expected<Derivatives, Error> FromMessage(const v1::DifferentiateResponse& message) {
  auto solution = FromMessage(message.solution());
  if (!solution) return tl::unexpected(solution.error());
  Derivatives derivatives;
  derivatives.solution = std::move(*solution);
  for (const v1::Gradient& gradient : message.gradients()) {
    auto problem = DerivativeFrom(gradient.gradient());
    if (!problem) return tl::unexpected(problem.error());
    derivatives.gradients.push_back({std::move(*problem), Copy(gradient.applied_impulse()),
                                     Copy(gradient.delassus_estimate())});
  }
  for (const v1::Tangent& given : message.tangents()) {
    Tangent& tangent = derivatives.tangents.emplace_back();
#define SAP_OUTPUT(name, ...) tangent.name = Copy(given.name());
#include "solver/problem/solution_fields.inc"
    tangent.cost = given.cost();
  }
  derivatives.kink_margin = Copy(message.kink_margin());
  for (const int status : message.adjoint_status()) {
    if (status < v1::ADJOINT_STATUS_DIFFERENTIATED ||
        status > v1::ADJOINT_STATUS_NUMERICAL_FAILURE) {
      return Malformed("an adjoint status that this version does not know");
    }
    derivatives.adjoint_status.push_back(static_cast<AdjointStatus>(status - 1));
  }
  return derivatives;
}

tl::expected<Solution, Error> FromMessage(const v1::Outcome& message) {
  switch (message.outcome_case()) {
    case v1::Outcome::kSolution:
      return FromMessage(message.solution());
    case v1::Outcome::kFailure:
      return tl::unexpected(ErrorFrom(message.failure()));
    case v1::Outcome::OUTCOME_NOT_SET:
      break;
  }
  return Malformed("neither solution nor failure");
}

tl::expected<Derivatives, Error> FromMessage(const v1::DifferentiateOutcome& message) {
  switch (message.outcome_case()) {
    case v1::DifferentiateOutcome::kDerivatives:
      return FromMessage(message.derivatives());
    case v1::DifferentiateOutcome::kFailure:
      return tl::unexpected(ErrorFrom(message.failure()));
    case v1::DifferentiateOutcome::OUTCOME_NOT_SET:
      break;
  }
  return Malformed("neither derivatives nor failure");
}

}  // namespace sap::client
