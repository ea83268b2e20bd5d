// What the transport knows about a call: when it came, until when somebody waits for the answer,
// and whether the client has given it up.
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
  // After it nobody waits for the answer. The solver gets 95 % of the time up to it, so that the
  // answer still has time to travel.
  Clock::time_point deadline{Clock::time_point::max()};
  const std::atomic<bool>* cancelled{nullptr};  // must outlive the call
  // Of whoever calls, and must outlive the call; null: of this process itself.
  ClientAccount* account{nullptr};
};

inline double SecondsSince(CallContext::Clock::time_point start) {
  return std::chrono::duration<double>(CallContext::Clock::now() - start).count();
}

// Stops the solver when the call is cancelled, at its time budget, or at 95 % of its deadline.
StopToken StopFor(const CallContext& limits, std::optional<std::chrono::nanoseconds> time_budget);

// An error if nobody waits for the answer any more.
ServiceStatus CheckWanted(const CallContext& limits);

}  // namespace sap
