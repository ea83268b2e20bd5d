#include "client/c/session.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "client/c/struct_reader.h"

namespace {

using sap::c::CallSettings;
using sap::c::Fail;
using sap::c::Status;
using sap::client::WaitLimit;

// How long a step is waited for that the server does not take, as a caller of slices of 50 ms does.
constexpr std::chrono::milliseconds kWriting{50};

WaitLimit UntilStop(const CallSettings& call) { return {.cancelled = call.options.cancelled}; }

}  // namespace

Status sap_session::Step(const sap_problem* problem, const sap_options* options,
                         const CallSettings& call, sap::c::AnswerContent* answer) {
  if (const int waiting = steps.in_flight(); waiting > 0) {
    return Fail(SAP_INVALID_ARGUMENT,
                std::to_string(waiting) + " steps are in flight; take their outcomes first");
  }
  if (Status sent = Send(problem, options, call, answer); !sent) return sent;
  if (!steps.AwaitOutcome(UntilStop(call))) {
    // As if it had not been sent.
    if (Status withdrawn = steps.Withdraw(answer->step_id()); !withdrawn) return withdrawn;
    return Fail(SAP_CANCELLED, "the step was cancelled");
  }
  return Take(call, answer);
}

Status sap_session::Send(const sap_problem* problem, const sap_options* options,
                         const CallSettings& call, sap::c::AnswerContent* answer) {
  const auto read = sap::c::ReadProblem(problem);
  if (!read) return Fail(read.error());
  std::optional<sap::client::SolveOptions> own;  // none: those of the session
  if (options != nullptr) {
    auto of_step = client->Read(options);
    if (!of_step) return tl::unexpected(std::move(of_step.error()));
    own = *std::move(of_step);
  }
  WaitLimit limit = UntilStop(call);
  if (!steps.AwaitRoom(limit)) return Fail(SAP_CANCELLED, "the step was cancelled");
  // Steps not written by then are written while somebody waits for an outcome.
  limit.until = sap::c::Clock::now() + kWriting;
  const auto sent = steps.Send(read->view, own, limit);
  if (!sent) return tl::unexpected(sent.error());
  answer->set_step_id(*sent);
  return {};
}

Status sap_session::Take(const CallSettings& call, sap::c::AnswerContent* answer) {
  if (!steps.AwaitOutcome(UntilStop(call))) {
    return Fail(SAP_CANCELLED, "the wait for an outcome was cancelled");
  }
  auto outcome = steps.Receive();
  if (!outcome) return tl::unexpected(std::move(outcome.error()));
  answer->set_step_id(outcome->step_id);
  return Put(std::move(outcome->solution), outcome->warm_started, answer);
}
