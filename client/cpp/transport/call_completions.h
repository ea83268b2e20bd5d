// The completion queue of one call, with one operation in flight at a time. Internal.
//
// Used as gRPC's synchronous calls use theirs, but the wait can poll before it blocks: waking a
// blocked thread, and its processor out of a sleep state, can take longer than solving a small
// problem.
#pragma once

#include <grpcpp/grpcpp.h>

namespace sap::client {

class CallCompletions {
 public:
  explicit CallCompletions(bool polls) : polls_(polls) {}
  ~CallCompletions();
  CallCompletions(const CallCompletions&) = delete;
  CallCompletions& operator=(const CallCompletions&) = delete;

  grpc::CompletionQueue* get() { return &queue_; }
  // Tag for every operation.
  void* tag() { return this; }

  // Waits for the operation in flight. False: nothing more to read, or the call has ended.
  bool Await();

 private:
  const bool polls_;
  grpc::CompletionQueue queue_;
};

}  // namespace sap::client
