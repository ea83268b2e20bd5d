#include "server/rpc/rejection_rate_limiter.h"

#include <algorithm>
#include <cstdint>
#include <ratio>

namespace sap {
namespace {

// A refusal costs a core that also solves 0.1 to 0.2 ms, so this is less than a tenth of it.
constexpr int kRefusalsPerSecond = 300;  // for each solver thread
// As many may be sent at once after a quiet time.
constexpr int kMostAtOnce = 100;
// Those that wait are sent together, at the end of each of these.
using Tick = std::chrono::duration<int64_t, std::ratio<20, 1000>>;

}  // namespace

RejectionRateLimiter::RejectionRateLimiter(int solver_threads)
    : interval_(Clock::duration(std::chrono::seconds(1)) / (kRefusalsPerSecond * solver_threads)) {}

RejectionRateLimiter::Clock::duration RejectionRateLimiter::Wait(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  last_due_ = std::max(last_due_, now - kMostAtOnce * interval_) + interval_;
  if (last_due_ <= now) return Clock::duration::zero();
  return std::chrono::ceil<Tick>(last_due_.time_since_epoch()) - now.time_since_epoch();
}

}  // namespace sap
