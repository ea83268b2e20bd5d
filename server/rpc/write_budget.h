// Time limit of all writes of a stream together. A limit of each write alone would let a client
// that takes each answer just in time keep the others for hours.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace sap {

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
  // Allowance per write for delays of a busy server.
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
