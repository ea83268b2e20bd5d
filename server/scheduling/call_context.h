// Per-call data from the transport: arrival time, deadline, cancellation flag and client account.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "server/scheduling/client_account.h"
#include "server/service_error.h"
#include "solver/parallel/stop_token.h"

namespace sap {

struct CallContext {
  using Clock = StopToken::Clock;
  Clock::time_point arrival{Clock::now()};
  // The solver stops earlier, see SolveDeadline.
  Clock::time_point deadline{Clock::time_point::max()};
  const std::atomic<bool>* cancelled{nullptr};  // set by the transport; must outlive the call
  // The client's account, which must outlive the call; null: this process itself (embedded client).
  ClientAccount* account{nullptr};
};

inline double SecondsSince(CallContext::Clock::time_point start) {
  return std::chrono::duration<double>(CallContext::Clock::now() - start).count();
}

// Limits of one solve besides those of its call.
struct SolveLimits {
  std::optional<std::chrono::nanoseconds> time_budget{};  // from the arrival of the call
  CallContext::Clock::time_point latest{CallContext::Clock::time_point::max()};
  std::chrono::nanoseconds answer_time{0};  // predicted time to encode and send the answer
};

// When the solver has to stop: at the time budget, at `latest`, or before the deadline of the call
// with a reserve for the answer: 5 % of the time from arrival to deadline, but no more than 50 ms
// and the predicted time of the answer.
CallContext::Clock::time_point SolveDeadline(const CallContext& call, const SolveLimits& limits);

// Stops at SolveDeadline and on cancellation.
StopToken StopTokenFor(const CallContext& call, const SolveLimits& limits);

// CANCELLED if the client cancelled the call, DEADLINE_EXCEEDED if the deadline has passed.
ServiceStatus CheckLive(const CallContext& call);

}  // namespace sap
