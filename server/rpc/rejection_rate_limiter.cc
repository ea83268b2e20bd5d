#include "server/rpc/rejection_rate_limiter.h"

#include <algorithm>
#include <cstdint>
#include <ratio>

namespace sap {
namespace {

// A rejection costs 0.1 to 0.2 ms of a core that also solves, so this rate uses less than a tenth
// of it.
constexpr int kRejectionsPerSecond = 300;  // per solver thread
// Burst size of the bucket.
constexpr int kBurst = 100;
// Delayed rejections are sent at multiples of this period.
using Tick = std::chrono::duration<int64_t, std::ratio<20, 1000>>;

}  // namespace

RejectionRateLimiter::RejectionRateLimiter(int solver_threads)
    : interval_(Clock::duration(std::chrono::seconds(1)) /
                (kRejectionsPerSecond * solver_threads)) {}

RejectionRateLimiter::Clock::duration RejectionRateLimiter::Wait(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  last_due_ = std::max(last_due_, now - kBurst * interval_) + interval_;
  if (last_due_ <= now) return Clock::duration::zero();
  return std::chrono::ceil<Tick>(last_due_.time_since_epoch()) - now.time_since_epoch();
}

}  // namespace sap
