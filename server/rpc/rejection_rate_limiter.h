// How often a server refuses: what refusals may take of its time, however many ask for one.
//
// Clients that come again as soon as they are refused would otherwise keep the server busy with
// telling them so. Refusals beyond the rate wait: who waits for one asks for nothing meanwhile, and
// many at once cost less than each by itself.
#pragma once

#include <chrono>
#include <mutex>

namespace sap {

// Thread-safe.
class RejectionRateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RejectionRateLimiter(int solver_threads);

  // How long one more refusal, asked for now, has to wait; zero if it may be sent at once.
  Clock::duration Wait(Clock::time_point now);

 private:
  const Clock::duration interval_;
  std::mutex mutex_;
  Clock::time_point last_due_{};  // when the last one was to be sent at the earliest
};

}  // namespace sap
