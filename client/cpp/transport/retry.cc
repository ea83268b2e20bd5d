#include "client/cpp/transport/retry.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <thread>

#include "client/cpp/transport/loss.h"

namespace sap::client {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1000};

}  // namespace

std::chrono::milliseconds RetryPauses::Next() {
  // Seeded by the time to the nanosecond, in which clients differ.
  thread_local std::minstd_rand random(
      static_cast<uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  const double factor = std::uniform_real_distribution(0.5, 1.5)(random);
  const std::chrono::duration<double, std::milli> pause = factor * next_;
  next_ = std::clamp(2 * next_, kFirstPause, kLongestPause);
  return std::chrono::duration_cast<std::chrono::milliseconds>(pause);
}

Retry::Retry(grpc::Channel* channel, std::chrono::nanoseconds within, Transport::Timeout deadline)
    : channel_(channel), within_(std::chrono::duration_cast<Clock::duration>(within)) {
  if (deadline) deadline_ = Clock::now() + *deadline;
}

Transport::Timeout Retry::left() const {
  if (!deadline_) return std::nullopt;
  return *deadline_ - Clock::now();
}

bool Retry::After(Error* error) {
  if (!IsLoss(*error, CallKind::kCall)) return false;
  error->lost_attempts = lost_attempts_ += error->lost_attempts;
  if (within_ <= Clock::duration::zero() || lost_attempts_ >= kMaxLostAttempts) return false;
  const Clock::time_point lost = Clock::now();
  if (!until_) until_ = std::min(lost + within_, deadline_.value_or(Clock::time_point::max()));
  const std::chrono::milliseconds pause = pauses_.Next();
  if (lost + pause >= *until_) return false;
  std::this_thread::sleep_for(pause);
  // gRPC advances its connections while a call or this wait polls them, and every 5 s otherwise.
  return channel_->WaitForConnected(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(*until_ - Clock::now()));
}

void Retry::Restart() {
  until_.reset();
  pauses_.Restart();
}

}  // namespace sap::client
