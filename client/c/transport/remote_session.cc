#include "client/c/transport/remote_session.h"

#include <chrono>
#include <optional>
#include <utility>

#include "client/c/transport/conversions.h"

namespace sap::c {
namespace {

// How long a step is waited for that the server does not take, as a caller of slices of 50 ms does.
constexpr std::chrono::milliseconds kWriting{50};

client::WaitLimit Until(const Wait& wait) {
  client::WaitLimit limit;
  if (wait) limit.until = std::chrono::steady_clock::now() + *wait;
  return limit;
}

client::WaitLimit UntilStop(const CallSettings& call) {
  return {.cancelled = call.limits.cancelled};
}

// The options of one step; none: those of the session.
tl::expected<std::optional<client::SolveOptions>, CallError> StepOptions(const sap_options* options,
                                                                         const CallSettings& call) {
  if (options == nullptr) return std::nullopt;
  const auto given = ReadOptions(options, SolverOptions().relative_tolerance);
  if (!given) return Fail(given.error());
  return ToClient(*given, call);
}

}  // namespace

Status RemoteSession::Step(const sap_problem* problem, const sap_options* options,
                           const CallSettings& call, AnswerContent* answer) {
  if (in_flight() > 0) {
    return Fail(SAP_INVALID_ARGUMENT,
                std::to_string(in_flight()) + " steps are in flight; take their outcomes first");
  }
  if (Status sent = Send(problem, options, call, answer); !sent) return sent;
  const uint64_t step_id = answer->step_id();
  if (!session_.AwaitOutcome(UntilStop(call))) {
    // As if it had not been sent.
    if (Status withdrawn = Withdraw(step_id); !withdrawn) return withdrawn;
    return Fail(SAP_CANCELLED, "the step was cancelled");
  }
  auto outcome = session_.Receive();
  if (!outcome) return tl::unexpected(FromClient(outcome.error()));
  return Put(std::move(outcome->solution), outcome->warm_started, answer);
}

Status RemoteSession::Send(const sap_problem* problem, const sap_options* options,
                           const CallSettings& call, AnswerContent* answer) {
  const auto read = ReadProblem(problem);
  if (!read) return Fail(read.error());
  const auto own = StepOptions(options, call);
  if (!own) return tl::unexpected(own.error());
  client::WaitLimit limit = UntilStop(call);
  if (!session_.AwaitRoom(limit)) return Fail(SAP_CANCELLED, "the step was cancelled");
  // Steps not written by then are written while somebody waits for an outcome.
  limit.until = std::chrono::steady_clock::now() + kWriting;
  const auto sent = session_.Send(read->view, *own, limit);
  if (!sent) return tl::unexpected(FromClient(sent.error()));
  answer->set_step_id(*sent);
  return {};
}

bool RemoteSession::AwaitOpen(const Wait& wait) { return session_.AwaitOpen(Until(wait)); }

bool RemoteSession::AwaitOutcome(const Wait& wait) { return session_.AwaitOutcome(Until(wait)); }

bool RemoteSession::AwaitRoom(const Wait& wait) { return session_.AwaitRoom(Until(wait)); }

Status RemoteSession::Take(const CallSettings& call, std::unique_ptr<AnswerContent>* answer) {
  if (!session_.AwaitOutcome(UntilStop(call))) {
    return Fail(SAP_CANCELLED, "the wait for an outcome was cancelled");
  }
  auto outcome = session_.Receive();
  if (!outcome) return tl::unexpected(FromClient(outcome.error()));
  (*answer)->set_step_id(outcome->step_id);
  return Put(std::move(outcome->solution), outcome->warm_started, answer->get());
}

Status RemoteSession::Notify(sap_callback changed, void* context) {
  session_.Notify(changed == nullptr ? std::function<void()>()
                                     : [changed, context] { changed(context); });
  return {};
}

Status RemoteSession::Withdraw(uint64_t step_id) { return FromClient(session_.Withdraw(step_id)); }

Status RemoteSession::Reset() { return FromClient(session_.Reset()); }

Status RemoteSession::Close(const CallSettings&) { return FromClient(session_.Close()); }

}  // namespace sap::c
