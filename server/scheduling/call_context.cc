#include "server/scheduling/call_context.h"

#include <algorithm>

namespace sap {

StopToken StopTokenFor(const CallContext& call,
                       std::optional<std::chrono::nanoseconds> time_budget) {
  using Clock = CallContext::Clock;
  Clock::time_point stop = Clock::time_point::max();
  if (call.deadline != Clock::time_point::max()) {
    stop = call.arrival + (call.deadline - call.arrival) / 20 * 19;
  }
  if (time_budget) stop = std::min(stop, call.arrival + *time_budget);
  return StopToken(call.cancelled, stop);
}

ServiceStatus CheckLive(const CallContext& call) {
  if (call.cancelled != nullptr && call.cancelled->load(std::memory_order_relaxed)) {
    return tl::unexpected(ServiceError{ServiceCode::kCancelled, "cancelled by the client", ""});
  }
  if (CallContext::Clock::now() >= call.deadline) {
    return tl::unexpected(
        ServiceError{ServiceCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return {};
}

}  // namespace sap
