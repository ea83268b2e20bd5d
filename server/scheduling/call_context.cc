#include "server/scheduling/call_context.h"

#include <algorithm>

namespace sap {

StopToken StopFor(const CallContext& limits, std::optional<std::chrono::nanoseconds> time_budget) {
  using Clock = CallContext::Clock;
  Clock::time_point stop = Clock::time_point::max();
  if (limits.deadline != Clock::time_point::max()) {
    stop = limits.arrival + (limits.deadline - limits.arrival) / 20 * 19;
  }
  if (time_budget) stop = std::min(stop, limits.arrival + *time_budget);
  return StopToken(limits.cancelled, stop);
}

ServiceStatus CheckWanted(const CallContext& limits) {
  if (limits.cancelled != nullptr && limits.cancelled->load(std::memory_order_relaxed)) {
    return tl::unexpected(ServiceError{ServiceCode::kCancelled, "cancelled by the client", ""});
  }
  if (CallContext::Clock::now() >= limits.deadline) {
    return tl::unexpected(
        ServiceError{ServiceCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return {};
}

}  // namespace sap
