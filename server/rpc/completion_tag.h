// Tags of completion queue operations: each tag is a handler that runs when its operation
// completes.
#pragma once

#include <grpcpp/completion_queue.h>

namespace sap {

class CompletionTag {
 public:
  // `ok` is gRPC's result: whether the operation succeeded. Called by a thread of the queue.
  virtual void Complete(bool ok) = 0;

 protected:
  ~CompletionTag() = default;
};

// A tag that calls a member function of its owner, which must outlive all operations that it
// started.
template <typename Owner>
class MemberTag final : public CompletionTag {
 public:
  using Handler = void (Owner::*)(bool ok);
  MemberTag(Owner* owner, Handler handler) : owner_(owner), handler_(handler) {}
  void Complete(bool ok) override { (owner_->*handler_)(ok); }

 private:
  Owner* const owner_;
  const Handler handler_;
};

// Runs the handlers of a queue until it is shut down and drained.
inline void ServeQueue(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<CompletionTag*>(tag)->Complete(ok);
}

}  // namespace sap
