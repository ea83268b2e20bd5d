// When a solve has to end early: a deadline on the steady clock, a cancellation flag set by another
// thread, or both.
//
// Polled between the phases of a Newton iteration and, where these take long, within them. Once a
// stop is requested it stays so. The flag must outlive the token.
#pragma once

#include <atomic>
#include <chrono>

namespace sap {

enum class StopReason : unsigned char { kNone, kDeadline, kCancelled };

class StopToken {
 public:
  using Clock = std::chrono::steady_clock;

  // Never stops.
  StopToken() = default;

  // Stops when *cancelled is true (null: no flag) or at the deadline, whichever is seen first.
  StopToken(const std::atomic<bool>* cancelled, Clock::time_point deadline)
      : cancelled_(cancelled), deadline_(deadline) {}

  // A token that only has a flag never reads the clock.
  StopReason Reason() const {
    if (Cancelled()) return StopReason::kCancelled;
    if (HasDeadline() && Clock::now() >= deadline_) {
      return StopReason::kDeadline;
    }
    return StopReason::kNone;
  }

  bool HasDeadline() const { return deadline_ != Clock::time_point::max(); }
  bool Requested() const { return Reason() != StopReason::kNone; }
  // Never reads the clock.
  bool Cancelled() const {
    return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed);
  }

  // The same with an earlier deadline: what comes after it takes that long.
  StopToken Before(Clock::duration what_comes_after) const {
    if (!HasDeadline()) return *this;
    return {cancelled_, deadline_ - what_comes_after};
  }
  // The same with a deadline that has passed: for what cannot be done any more.
  StopToken Passed() const { return {cancelled_, Clock::time_point::min()}; }

 private:
  const std::atomic<bool>* cancelled_{nullptr};
  Clock::time_point deadline_{Clock::time_point::max()};
};

}  // namespace sap
