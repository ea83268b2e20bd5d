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
  // The solver stops at 95 % of the time to the deadline, which leaves time to encode and send the
  // answer.
  Clock::time_point deadline{Clock::time_point::max()};
  const std::atomic<bool>* cancelled{nullptr};  // set by the transport; must outlive the call
  // The client's account, which must outlive the call; null: this process itself (embedded client).
  ClientAccount* account{nullptr};
};

inline double SecondsSince(CallContext::Clock::time_point start) {
  return std::chrono::duration<double>(CallContext::Clock::now() - start).count();
}

// Stop token for the solver: stops on cancellation, at the time budget, or at 95 % of the deadline.
StopToken StopTokenFor(const CallContext& call,
                       std::optional<std::chrono::nanoseconds> time_budget);

// CANCELLED if the client cancelled the call, DEADLINE_EXCEEDED if the deadline has passed.
ServiceStatus CheckLive(const CallContext& call);

}  // namespace sap
