// In-flight call counter and drain flag for graceful shutdown.
#pragma once

#include <atomic>

namespace sap {

class InFlightCalls {
 public:
  // Counts an accepted call until Leave. False: the server is draining, so reject the call (and
  // still call Leave).
  [[nodiscard]] bool Enter() {
    ++count_;
    return !draining_;
  }

  // The call has ended.
  void Leave() { --count_; }

  // Starts draining. From then on a count of zero means that no accepted call is left.
  void Drain() { draining_ = true; }

  // For calls that are rejected before they are counted.
  bool draining() const { return draining_; }

  int count() const { return count_; }

  // Counts a call object from its request on the completion queue until its last completed
  // operation. The queue must not be shut down before this count is zero.
  void BeginOnQueue() { ++on_queue_; }
  void EndOnQueue() { --on_queue_; }
  int on_queue() const { return on_queue_; }

 private:
  // Sequentially consistent: an entering call either sees the drain flag or is included in the
  // count.
  std::atomic<int> count_{0};
  std::atomic<int> on_queue_{0};
  std::atomic<bool> draining_{false};
};

}  // namespace sap
