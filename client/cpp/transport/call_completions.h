// The completion queue of one call, whose operations are awaited one at a time. Internal.
//
// It does what gRPC's synchronous calls do, and can poll for a while before the thread sleeps:
// where a processor sleeps too, being woken takes longer than a small problem.
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
  // Of every operation.
  void* tag() { return this; }

  // Waits for the operation that was started. False if there was nothing more to read, or if it
  // cannot be done any more.
  bool Await();

 private:
  const bool polls_;
  grpc::CompletionQueue queue_;
};

}  // namespace sap::client
