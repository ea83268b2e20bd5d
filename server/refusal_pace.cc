#include "server/refusal_pace.h"

#include <algorithm>
#include <vector>

namespace sap {
namespace {

// A refusal costs a core that also solves 0.1 to 0.2 ms, so this is less than a tenth of it.
constexpr double kRefusalsPerSecond = 300;  // for each solver thread
constexpr double kMostAtOnce = 100;
constexpr std::chrono::milliseconds kReleaseEvery{20};

}  // namespace

RefusalPace::~RefusalPace() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool RefusalPace::NowOrLater(CompletionTag* tag) {
  const std::lock_guard lock(mutex_);
  if (held_.empty()) {
    Refill(Clock::now());
    if (left_ >= 1) {
      --left_;
      return true;
    }
  }
  held_.push_back(tag);
  if (!thread_.joinable()) thread_ = std::thread([this] { ReleaseNowAndThen(); });
  if (held_.size() == 1) wake_.notify_one();
  return false;
}

void RefusalPace::ReleaseNowAndThen() {
  std::vector<CompletionTag*> due;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ends_ || !held_.empty(); });
    if (held_.empty()) return;
    wake_.wait_for(lock, kReleaseEvery, [this] { return ends_; });
    Refill(Clock::now());
    for (; left_ >= 1 && !held_.empty(); --left_) {
      due.push_back(held_.front());
      held_.pop_front();
    }
    lock.unlock();
    for (CompletionTag* tag : due) tag->Complete(true);
    due.clear();
    lock.lock();
  }
}

void RefusalPace::Refill(Clock::time_point now) {
  const std::chrono::duration<double> since = now - refilled_;
  left_ = std::min(kMostAtOnce, left_ + threads_ * kRefusalsPerSecond * since.count());
  refilled_ = now;
}

}  // namespace sap
