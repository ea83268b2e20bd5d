// When a call has to end, and when its solve has to end for that.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "solver/engine/engine_error.h"
#include "solver/parallel/stop_token.h"

namespace sap {

// A call as its caller limits it.
struct CallLimits {
  using Clock = StopToken::Clock;
  Clock::time_point arrival{Clock::now()};
  // The answer is of no use after it. The solver stops earlier, see SolveDeadline.
  Clock::time_point deadline{Clock::time_point::max()};
  const std::atomic<bool>* cancelled{nullptr};  // must outlive the call
};

// Limits of one solve in addition to those of its call.
struct SolveLimits {
  std::optional<std::chrono::nanoseconds> time_budget{};  // from the arrival of the call
  CallLimits::Clock::time_point latest{CallLimits::Clock::time_point::max()};
  std::chrono::nanoseconds answer_time{0};  // predicted time to encode and send the answer
};

// Part of the time between arrival and deadline that a solve leaves for its answer: 5 %, but no
// more than 50 ms and the predicted time of the answer.
std::chrono::nanoseconds ReserveForAnswer(std::chrono::nanoseconds time_to_deadline,
                                          std::chrono::nanoseconds answer_time = {});

// When the solver has to stop: at the time budget, at `latest`, or before the deadline of the call
// with the reserve for the answer.
CallLimits::Clock::time_point SolveDeadline(const CallLimits& call, const SolveLimits& limits);

// Stops at SolveDeadline and on cancellation.
StopToken StopTokenFor(const CallLimits& call, const SolveLimits& limits);

// kCancelled if the caller cancelled the call, kDeadlineExceeded if the deadline has passed.
EngineStatus CheckLive(const CallLimits& call);

inline double SecondsSince(CallLimits::Clock::time_point start) {
  return std::chrono::duration<double>(CallLimits::Clock::now() - start).count();
}

}  // namespace sap
