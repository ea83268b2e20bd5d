// Time limits of operations that a client can hold up: a message that does not arrive, answers that
// are not taken. A periodic sweep enforces them, so the operations themselves set no timers.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace sap {

// Measures one operation at a time. Starting and stopping cost an atomic operation each.
class StallTimer {
 public:
  using Clock = std::chrono::steady_clock;

  void Start(Clock::time_point now) {
    started_.store(now.time_since_epoch().count(), std::memory_order_release);
  }

  // Waits for a cancellation that is in progress, so that the call may end afterwards.
  void Stop() {
    int64_t started = started_.load(std::memory_order_relaxed);
    while (started == kCancelling ||
           !started_.compare_exchange_weak(started, kStopped, std::memory_order_acq_rel)) {
      if (started == kCancelling) std::this_thread::yield();
      started = started_.load(std::memory_order_relaxed);
    }
  }

  // Calls `cancel`, once per operation, if the operation has been in progress since `limit`.
  template <typename Cancel>
  void CancelIfStartedBy(Clock::time_point limit, Cancel cancel) {
    int64_t started = started_.load(std::memory_order_relaxed);
    if (started <= kStopped || started > limit.time_since_epoch().count()) return;
    if (!started_.compare_exchange_strong(started, kCancelling, std::memory_order_acq_rel)) return;
    cancel();
    started_.store(kStopped, std::memory_order_release);
  }

 private:
  static constexpr int64_t kStopped = 0;
  static constexpr int64_t kCancelling = -1;

  std::atomic<int64_t> started_{kStopped};  // ticks of the clock, or one of the constants
};

// Time limit of all writes of a stream together. A limit of each write alone would let a client
// that takes each answer just in time keep the others for hours.
class WriteBudget {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  void WriteStarted(Clock::time_point now) { started_ = now; }
  void WriteCompleted(Clock::time_point now, size_t bytes) {
    blocked_ += Blocked(now);
    sent_bytes_ += static_cast<double>(bytes);
  }

  // Whether the writes, of which one is in progress, were blocked for longer than the timeout plus
  // the time of the bytes sent at the minimum rate.
  bool IsExceeded(Clock::time_point now, double timeout_s) const {
    return (blocked_ + Blocked(now)).count() > timeout_s + sent_bytes_ / kMinBytesPerSecond;
  }

 private:
  // What a write may take on a busy server is no fault of the client.
  static constexpr Seconds kFreePerWrite{0.1};
  static constexpr double kMinBytesPerSecond = 1e6;

  Seconds Blocked(Clock::time_point now) const {
    return std::max(Seconds(0), Seconds(now - started_) - kFreePerWrite);
  }

  Clock::time_point started_;
  Seconds blocked_{0};
  double sent_bytes_{0};
};

}  // namespace sap
