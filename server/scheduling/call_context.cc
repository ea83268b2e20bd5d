#include "server/scheduling/call_context.h"

#include <algorithm>

namespace sap {
namespace {

using Clock = CallContext::Clock;

// Largest reserve before a deadline for an answer of no size.
constexpr std::chrono::milliseconds kMaxReserve{50};

}  // namespace

Clock::time_point SolveDeadline(const CallContext& call, const SolveLimits& limits) {
  Clock::time_point stop = limits.latest;
  if (call.deadline != Clock::time_point::max()) {
    const Clock::duration share = (call.deadline - call.arrival) / 20;
    const auto reserve = std::min<Clock::duration>(share, kMaxReserve + limits.answer_time);
    stop = std::min(stop, call.deadline - reserve);
  }
  if (limits.time_budget) stop = std::min(stop, call.arrival + *limits.time_budget);
  return stop;
}

StopToken StopTokenFor(const CallContext& call, const SolveLimits& limits) {
  return StopToken(call.cancelled, SolveDeadline(call, limits));
}

ServiceStatus CheckLive(const CallContext& call) {
  if (call.cancelled != nullptr && call.cancelled->load(std::memory_order_relaxed)) {
    return tl::unexpected(ServiceError{ServiceCode::kCancelled, "cancelled by the client", ""});
  }
  if (Clock::now() >= call.deadline) {
    return tl::unexpected(
        ServiceError{ServiceCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return {};
}

}  // namespace sap
