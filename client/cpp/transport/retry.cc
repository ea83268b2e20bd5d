#include "client/cpp/transport/retry.h"

#include <algorithm>
#include <cstdint>
#include <random>

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

Task<bool> Pause(Events* events, Clock::time_point until) {
  events->AddAt(until);
  while (Clock::now() < until && !events->cancelled()) co_await events->Next();
  co_return !events->cancelled();
}

Retry::Retry(grpc::Channel* channel, Events* events, std::chrono::nanoseconds within,
             Timeout deadline)
    : channel_(channel),
      events_(events),
      within_(std::chrono::duration_cast<Clock::duration>(within)) {
  if (deadline) deadline_ = Clock::now() + *deadline;
}

Timeout Retry::left() const {
  if (!deadline_) return std::nullopt;
  return *deadline_ - Clock::now();
}

bool Retry::MayRepeat(Error* error) {
  if (events_->cancelled()) return false;
  if (IsOtherBuild(*error)) return build_search_.GoesOn(*error);
  if (!IsLoss(*error, CallKind::kCall)) return false;
  error->lost_attempts = lost_attempts_ += error->lost_attempts;
  return lost_attempts_ < kMaxLostAttempts;
}

Task<bool> Retry::After(Error* error) {
  if (!MayRepeat(error) || within_ <= Clock::duration::zero()) co_return false;
  const Clock::time_point lost = Clock::now();
  if (!until_) until_ = std::min(lost + within_, deadline_.value_or(kNever));
  const Clock::time_point next = lost + pauses_.Next();
  if (next >= *until_) co_return false;
  const bool waited = co_await Pause(events_, next);
  bool connected = false;
  if (waited) connected = co_await AwaitConnection();
  if (events_->cancelled()) *error = CallCancelled();
  co_return connected;
}

// gRPC advances its connections while a call or this wait polls them, and every 5 s otherwise.
Task<bool> Retry::AwaitConnection() {
  // This wait of gRPC cannot be cancelled.
  constexpr std::chrono::milliseconds kSlice{100};
  while (Clock::now() < *until_ && !events_->cancelled()) {
    const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) co_return true;
    if (state == GRPC_CHANNEL_SHUTDOWN) co_return false;
    const auto slice = std::min<Clock::duration>(kSlice, *until_ - Clock::now());
    Operation change;
    channel_->NotifyOnStateChange(
        state,
        std::chrono::system_clock::now() +
            std::chrono::duration_cast<std::chrono::system_clock::duration>(slice),
        events_->queue(), events_->Begin(&change));
    while (change.pending) co_await events_->Next();
  }
  co_return false;
}

void Retry::Restart() {
  until_.reset();
  build_search_ = {};
  pauses_.Restart();
}

}  // namespace sap::client
