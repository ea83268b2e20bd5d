// When a solve has to end early: a deadline on the steady clock, a cancellation flag set by another
// thread, or both.
//
// Polled between the phases of a Newton iteration and, where these take long, within them. Once a
// stop is requested it stays requested. The flag must outlive the token.
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
    return DeadlinePassed() ? StopReason::kDeadline : StopReason::kNone;
  }

  bool HasDeadline() const { return deadline_ != Clock::time_point::max(); }
  bool Requested() const { return Cancelled() || DeadlinePassed(); }
  // Never reads the clock.
  bool Cancelled() const {
    return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed);
  }

  // Time until the deadline, 0 if it has passed. Requires HasDeadline().
  Clock::duration TimeLeft() const {
    const Clock::time_point now = Clock::now();
    return deadline_ > now ? deadline_ - now : Clock::duration::zero();
  }

  // The same with a deadline earlier by `duration` >= 0, which is left for what comes afterwards.
  StopToken EarlierBy(Clock::duration duration) const {
    if (!HasDeadline()) return *this;
    // The difference would overflow, as it does for an expired token.
    if (deadline_ < Clock::time_point::min() + duration) return Expired();
    return {cancelled_, deadline_ - duration};
  }
  // The same without its deadline: only the flag stops.
  StopToken WithoutDeadline() const { return {cancelled_, Clock::time_point::max()}; }
  // The same with a deadline in the past.
  StopToken Expired() const { return {cancelled_, Clock::time_point::min()}; }

 private:
  bool DeadlinePassed() const { return HasDeadline() && Clock::now() >= deadline_; }

  const std::atomic<bool>* cancelled_{nullptr};
  Clock::time_point deadline_{Clock::time_point::max()};
};

}  // namespace sap
