// How many calls are being served, and whether new ones still are: what a server has to know to
// finish its work before it goes.
#pragma once

#include <atomic>

namespace sap {

class InFlightCalls {
 public:
  // Counts a call that was accepted, until Leave. False: the server is draining, so refuse it.
  [[nodiscard]] bool Enter() {
    ++count_;
    return !draining_;
  }

  // The answer has been sent, or nobody waits for it.
  void Leave() { --count_; }

  // After this, a count of zero means that no call that was let in is left.
  void Drain() { draining_ = true; }

  // Tells sooner than Enter, for calls that have yet to arrive in full.
  bool draining() const { return draining_; }

  int count() const { return count_; }

  // A call may begin operations on its completion queue from the time it is awaited there until it
  // is over. The queue must not be shut down before.
  void BeginOnQueue() { ++on_queue_; }
  void EndOnQueue() { --on_queue_; }
  int on_queue() const { return on_queue_; }

 private:
  // Sequentially consistent: a call either sees that the server drains or is seen in the count.
  std::atomic<int> count_{0};
  std::atomic<int> on_queue_{0};
  std::atomic<bool> draining_{false};
};

}  // namespace sap
