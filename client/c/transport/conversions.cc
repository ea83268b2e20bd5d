#include "client/c/transport/conversions.h"

#include <chrono>
#include <utility>

namespace sap::c {
namespace {

int32_t KindOf(client::ErrorCode code) {
  switch (code) {
    case client::ErrorCode::kInvalidArgument:
      return SAP_INVALID_ARGUMENT;
    case client::ErrorCode::kResourceExhausted:
      return SAP_RESOURCE_EXHAUSTED;
    case client::ErrorCode::kUnauthenticated:
      return SAP_UNAUTHENTICATED;
    case client::ErrorCode::kPermissionDenied:
      return SAP_PERMISSION_DENIED;
    case client::ErrorCode::kFailedPrecondition:
      return SAP_FAILED_PRECONDITION;
    case client::ErrorCode::kAborted:
      return SAP_ABORTED;
    case client::ErrorCode::kDeadlineExceeded:
      return SAP_DEADLINE_EXCEEDED;
    case client::ErrorCode::kCancelled:
      return SAP_CANCELLED;
    case client::ErrorCode::kUnavailable:
      return SAP_UNAVAILABLE;
    case client::ErrorCode::kUnimplemented:
      return SAP_UNIMPLEMENTED;
    case client::ErrorCode::kInternal:
      return SAP_INTERNAL;
  }
  return SAP_INTERNAL;
}

// Fields that the server left out are empty.
void PutSolution(client::Solution solution, bool warm_started, AnswerContent* content) {
  const client::PhaseTimings timings = solution.timings;
  content->solution = std::move(solution);
  content->solution.times = {.islands_s = timings.islands_s, .solve_s = timings.solve_s};
  content->SetSolution(
      {.decode_s = timings.decode_s, .queue_s = timings.queue_s, .encode_s = timings.encode_s},
      warm_started, SolutionMask().set());
}

}  // namespace

CallError FromClient(const client::Error& error) {
  return {.kind = KindOf(error.code),
          .message = error.message,
          .field = error.field,
          .reason = error.reason,
          .request_id = error.request_id,
          .server = error.server,
          .retry_after_s = std::chrono::duration<double>(error.retry_after).count(),
          .lost_attempts = error.lost_attempts};
}

client::CallOptions CallOf(const CallSettings& call) {
  return {.cancelled = call.limits.cancelled,
          .request_id = call.request_id,
          .traceparent = call.traceparent};
}

tl::expected<client::SolveOptions, CallError> ToClient(const GivenOptions& given,
                                                       const CallSettings& call) {
  if (given.solver.max_factor_bytes != SolverOptions().max_factor_bytes) {
    return Fail(SAP_INVALID_ARGUMENT,
                "options.max_memory_bytes is for solves in this process; a server has its own",
                "options.max_memory_bytes");
  }
  client::SolveOptions options;
  options.solver = given.solver;
  options.time_budget = given.time_budget;
  options.deadline = call.deadline;
  if (!given.mask.all()) {
    for (size_t i = 0; i < given.mask.size(); ++i) {
      if (given.mask[i]) options.response_mask.emplace_back(kSolutionFields[i]);
    }
  }
  if (given.high_priority) options.priority = client::Priority::kHigh;
  options.call = CallOf(call);
  return options;
}

tl::expected<ClientDifferentiation, CallError> ToClient(const sap_differentiation* request,
                                                        const CallSettings& call) {
  const auto taken = ReadRequest(request);
  if (!taken) return Fail(taken.error());
  const auto given = ReadOptions(taken->options, kDerivativeTolerance);
  if (!given) return Fail(given.error());
  const auto options = ToClient(*given, call);
  if (!options) return tl::unexpected(options.error());
  const auto problem = ReadProblem(taken->problem);
  if (!problem) return Fail(problem.error());
  auto asked = ReadDifferentiation(*taken, *problem);
  if (!asked) return Fail(asked.error());
  const char* const* const paths = taken->wanted;
  return ClientDifferentiation{.view = {.problem = problem->view,
                                        .derivatives = std::move(asked->derivatives),
                                        .solve = *options,
                                        .wanted = {paths, paths + taken->num_wanted},
                                        .given = problem->regularization},
                               .wanted = std::move(asked->wanted)};
}

Status Put(tl::expected<client::Solution, client::Error> outcome, bool warm_started,
           AnswerContent* content) {
  if (!outcome) return tl::unexpected(FromClient(outcome.error()));
  PutSolution(std::move(*outcome), warm_started, content);
  return {};
}

Status Put(tl::expected<client::Derivatives, client::Error> outcome, const InputSelection& wanted,
           AnswerContent* content) {
  if (!outcome) return tl::unexpected(FromClient(outcome.error()));
  PutSolution(std::move(outcome->solution), /*warm_started=*/false, content);
  content->derivatives.tangents = std::move(outcome->tangents);
  content->derivatives.kink_margin = std::move(outcome->kink_margin);
  content->derivatives.adjoint_status = std::move(outcome->adjoint_status);
  auto* gradients = content->gradients();
  gradients->clear();
  for (client::Gradient& gradient : outcome->gradients) {
    GradientStructs& structs = *gradients->emplace_back(std::make_unique<GradientStructs>());
    structs.inputs.arrays = std::move(gradient.problem);
    structs.applied_impulse = std::move(gradient.applied_impulse);
    structs.delassus_estimate = std::move(gradient.delassus_estimate);
  }
  content->SetDerivatives(wanted);
  return {};
}

void Put(const client::ServerInfo& info, AnswerContent* content) {
  sap_server_info numbers{};
  numbers.processors = info.processors;
  numbers.solver_threads = info.solver_threads;
  numbers.max_message_bytes = info.max_message_bytes;
  numbers.max_solve_memory_bytes = info.max_solve_memory_bytes;
  numbers.max_trees = info.max_trees;
  numbers.max_tree_dofs = info.max_tree_dofs;
  numbers.max_contacts = info.max_contacts;
  numbers.max_rows = info.max_rows;
  numbers.max_row_entries = info.max_row_entries;
  numbers.max_row_pairs = info.max_row_pairs;
  numbers.max_iterations = info.max_iterations;
  numbers.max_concurrent_calls = info.max_concurrent_calls;
  numbers.max_batch_problems = info.max_batch_problems;
  numbers.max_sessions = info.max_sessions;
  numbers.max_client_sessions = info.max_client_sessions;
  numbers.max_steps_in_flight = info.max_steps_in_flight;
  numbers.max_derivatives = info.max_derivatives;
  numbers.high_priority = info.high_priority;
  numbers.max_solve_s = info.max_solve_s;
  numbers.max_client_calls_per_s = info.max_client_calls_per_s;
  numbers.max_client_calls = info.max_client_calls;
  numbers.max_held_bytes = info.max_held_bytes;
  numbers.max_client_bytes = info.max_client_bytes;
  numbers.queue_timeout_s = info.queue_timeout_s;
  numbers.read_timeout_s = info.read_timeout_s;
  numbers.session_idle_s = info.session_idle_s;
  numbers.connection_age_s = info.connection_age_s;
  content->SetInfo({info.version, info.instruction_set, info.boot_id}, numbers);
}

}  // namespace sap::c
