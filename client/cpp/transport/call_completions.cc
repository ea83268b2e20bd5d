#include "client/cpp/transport/call_completions.h"

#include <grpc/support/time.h>

#include <chrono>
#include <thread>

namespace sap::client {
namespace {

using Clock = std::chrono::steady_clock;

// In a longer wait the wake-up is a small part.
constexpr std::chrono::milliseconds kPollTime{1};

}  // namespace

CallCompletions::~CallCompletions() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool CallCompletions::Await() {
  void* tag = nullptr;
  bool ok = false;
  if (polls_) {
    const gpr_timespec at_once = gpr_time_0(GPR_CLOCK_MONOTONIC);
    const Clock::time_point until = Clock::now() + kPollTime;
    do {
      if (queue_.AsyncNext(&tag, &ok, at_once) == grpc::CompletionQueue::GOT_EVENT) return ok;
      std::this_thread::yield();  // to a server on the same processor
    } while (Clock::now() < until);
  }
  queue_.Next(&tag, &ok);
  return ok;
}

}  // namespace sap::client
