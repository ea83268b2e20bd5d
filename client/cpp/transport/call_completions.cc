#include "client/cpp/transport/call_completions.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <thread>

namespace sap::client {
namespace {

// In a longer wait the wake-up is a small part.
constexpr std::chrono::milliseconds kPollTime{1};

gpr_timespec Deadline(CallCompletions::Clock::time_point until) {
  using Clock = CallCompletions::Clock;
  if (until == Clock::time_point::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const std::chrono::nanoseconds left = std::max<Clock::duration>(until - Clock::now(), {});
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(left.count(), GPR_TIMESPAN));
}

}  // namespace

CallCompletions::~CallCompletions() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

CallCompletions::Completion CallCompletions::Next(Clock::time_point until) {
  Completion done;
  if (polls_) {
    const gpr_timespec at_once = gpr_time_0(GPR_CLOCK_MONOTONIC);
    const Clock::time_point poll_until = std::min(until, Clock::now() + kPollTime);
    do {
      if (queue_.AsyncNext(&done.tag, &done.ok, at_once) == grpc::CompletionQueue::GOT_EVENT) {
        return done;
      }
      std::this_thread::yield();  // to a server on the same processor
    } while (Clock::now() < poll_until);
  }
  if (queue_.AsyncNext(&done.tag, &done.ok, Deadline(until)) != grpc::CompletionQueue::GOT_EVENT) {
    return {};
  }
  return done;
}

}  // namespace sap::client
