#include "server/rpc/rejection_rate_limiter.h"

#include <algorithm>
#include <cstdint>
#include <ratio>

namespace sap {
namespace {

// A rejection costs 0.1 to 0.2 ms of a core that also solves, so this rate uses less than a tenth
// of it.
constexpr int kRejectionsPerSecond = 300;  // per client and solver thread
// Burst size of the bucket.
constexpr int kBurst = 100;
// Delayed rejections are sent at multiples of this period.
using Tick = std::chrono::duration<int64_t, std::ratio<20, 1000>>;
// Longest delay, with the tick to which it is rounded up ten seconds. The rate holds as long as a
// client has at most this many seconds' worth of rejections outstanding; a drain may wait as long.
constexpr std::chrono::milliseconds kMaxDelay{9980};
// The same for calls without a valid token, of which proxies and drains should hold few.
constexpr std::chrono::milliseconds kMaxDelayOfStrangers{980};

}  // namespace

RejectionRateLimiter::RejectionRateLimiter(int solver_threads)
    : interval_(Clock::duration(std::chrono::seconds(1)) /
                (kRejectionsPerSecond * solver_threads)) {}

bool RejectionRateLimiter::Delay(const ClientAccount* account, grpc::CompletionQueue* queue,
                                 CompletionTag* tag, grpc::Alarm* alarm) {
  const Clock::duration wait =
      Wait(account == nullptr ? std::string_view() : account->name(), Clock::now());
  if (wait == wait.zero()) return false;
  alarm->Set(queue, std::chrono::system_clock::now() + wait, tag);
  return true;
}

RejectionRateLimiter::Clock::duration RejectionRateLimiter::Wait(std::string_view client,
                                                                 Clock::time_point now) {
  const Clock::time_point full = now - kBurst * interval_;
  const std::lock_guard lock(mutex_);
  auto bucket = last_due_.find(client);
  if (bucket == last_due_.end()) {
    if (last_due_.size() >= sweep_at_) {
      std::erase_if(last_due_, [&](const auto& entry) { return entry.second <= full; });
      sweep_at_ = std::max<size_t>(64, 2 * last_due_.size());
    }
    bucket = last_due_.emplace(client, full).first;
  }
  Clock::time_point& last_due = bucket->second;
  last_due = std::min(std::max(last_due, full) + interval_,
                      now + (client.empty() ? kMaxDelayOfStrangers : kMaxDelay));
  if (last_due <= now) return Clock::duration::zero();
  return std::chrono::ceil<Tick>(last_due.time_since_epoch()) - now.time_since_epoch();
}

}  // namespace sap
