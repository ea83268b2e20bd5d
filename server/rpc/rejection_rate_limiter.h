// Token bucket for RESOURCE_EXHAUSTED responses. Rejections beyond the rate are delayed and sent in
// 20 ms batches.
//
// Otherwise clients that retry immediately could saturate the server with rejections. A client that
// waits for its rejection sends no further request, and a batch costs less than separate responses.
#pragma once

#include <chrono>
#include <mutex>

namespace sap {

// Thread-safe.
class RejectionRateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RejectionRateLimiter(int solver_threads);

  // Takes a token. Returns how long this rejection must be delayed; zero: send it now.
  Clock::duration Wait(Clock::time_point now);

 private:
  const Clock::duration interval_;
  std::mutex mutex_;
  Clock::time_point last_due_{};  // earliest send time of the last rejection
};

}  // namespace sap
