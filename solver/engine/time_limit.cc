#include "solver/engine/time_limit.h"

#include <algorithm>

namespace sap {
namespace {

using Clock = CallLimits::Clock;

// Largest reserve before a deadline for an answer of no size.
constexpr std::chrono::milliseconds kMaxReserve{50};

}  // namespace

std::chrono::nanoseconds ReserveForAnswer(std::chrono::nanoseconds time_to_deadline,
                                          std::chrono::nanoseconds answer_time) {
  return std::min<std::chrono::nanoseconds>(time_to_deadline / 20, kMaxReserve + answer_time);
}

Clock::time_point SolveDeadline(const CallLimits& call, const SolveLimits& limits) {
  Clock::time_point stop = limits.latest;
  if (call.deadline != Clock::time_point::max()) {
    stop = std::min(
        stop, call.deadline - ReserveForAnswer(call.deadline - call.arrival, limits.answer_time));
  }
  if (limits.time_budget) stop = std::min(stop, call.arrival + *limits.time_budget);
  return stop;
}

StopToken StopTokenFor(const CallLimits& call, const SolveLimits& limits) {
  return StopToken(call.cancelled, SolveDeadline(call, limits));
}

EngineStatus CheckLive(const CallLimits& call) {
  if (call.cancelled != nullptr && call.cancelled->load(std::memory_order_relaxed)) {
    return tl::unexpected(EngineError{EngineErrorCode::kCancelled, "cancelled by the caller", ""});
  }
  if (call.deadline != Clock::time_point::max() && Clock::now() >= call.deadline) {
    return tl::unexpected(
        EngineError{EngineErrorCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return {};
}

}  // namespace sap
