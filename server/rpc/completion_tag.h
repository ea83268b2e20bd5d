// What travels through a completion queue as a tag: a step of some call, to be taken when the
// operation it stands for has completed.
#pragma once

#include <grpcpp/completion_queue.h>

namespace sap {

class CompletionTag {
 public:
  // `ok` as gRPC gives it: whether the operation succeeded. Called by a thread of the queue.
  virtual void Complete(bool ok) = 0;

 protected:
  ~CompletionTag() = default;
};

// A tag that calls a member function of its owner. The owner outlives every operation it started.
template <typename Owner>
class MemberTag final : public CompletionTag {
 public:
  using Step = void (Owner::*)(bool ok);
  MemberTag(Owner* owner, Step step) : owner_(owner), step_(step) {}
  void Complete(bool ok) override { (owner_->*step_)(ok); }

 private:
  Owner* const owner_;
  const Step step_;
};

// Takes the steps of a queue until it has been shut down and emptied.
inline void ServeQueue(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<CompletionTag*>(tag)->Complete(ok);
}

}  // namespace sap
