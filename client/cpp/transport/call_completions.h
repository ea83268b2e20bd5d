// The completion queue of one call. Internal.
//
// Used as gRPC's synchronous calls use theirs, but the wait can poll before it blocks: waking a
// blocked thread, and its processor out of a sleep state, can take longer than solving a small
// problem.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>

namespace sap::client {

class CallCompletions {
 public:
  using Clock = std::chrono::steady_clock;

  // A completed operation.
  struct Completion {
    void* tag{nullptr};  // null: none within the time
    bool ok{false};      // false: nothing more to read, or the call has ended
  };

  explicit CallCompletions(bool polls) : polls_(polls) {}
  ~CallCompletions();
  CallCompletions(const CallCompletions&) = delete;
  CallCompletions& operator=(const CallCompletions&) = delete;

  grpc::CompletionQueue* get() { return &queue_; }
  // Tag of every operation of a call that has one in flight at a time.
  void* tag() { return this; }

  // Waits for the operation in flight; its `ok`.
  bool Await() { return Next(Clock::time_point::max()).ok; }

  // Waits for the next operation to complete, until the time.
  Completion Next(Clock::time_point until);

 private:
  const bool polls_;
  grpc::CompletionQueue queue_;
};

}  // namespace sap::client
