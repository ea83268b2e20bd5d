// Whether loops gain by being shared: the time that helpers work on them, against the time that
// their openers wait for helpers that other processes keep from their processors.
//
// A helper that is preempted within an index holds the opener up for a time slice, some
// milliseconds, and a solve has hundreds of loops. When waiting costs more than helpers contribute,
// sharing is suspended for twenty times the loss, so that it costs at most 5 % of the time, and
// never for longer than 50 ms: a wait of one loop (page faults of a first solve, a late wake-up)
// says little of the next, and a solve with one loop of 100 ms loses one solve to it at most. The
// pause is real time, whether loops are opened meanwhile or not. Where helpers do more than is
// waited, loops stay shared, however long single waits are.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace sap {

enum class Sharing : unsigned char {
  kWhereItGains,
  kAlways  // for bodies that wait for one another, and tests of what runs concurrently
};

class SharingBalance {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SharingBalance(Sharing sharing) : sharing_(sharing) {}

  // A helper worked on a loop for so long, time without a processor left out. This much may be
  // waited for it: an opener that leaves a long index to a helper loses nothing.
  void AddHelp(Clock::duration time) {
    const int64_t help = balance_.fetch_add(time.count(), std::memory_order_relaxed) + time.count();
    const int64_t most = std::max(kMostCredit, time).count();
    if (help > most) balance_.store(most, std::memory_order_relaxed);
  }

  // An opener waited for so long without anything to do, until `now`.
  void AddWait(Clock::duration time, Clock::time_point now) {
    const int64_t left = balance_.fetch_sub(time.count(), std::memory_order_relaxed) - time.count();
    if (left >= 0 || sharing_ == Sharing::kAlways) return;
    balance_.store(0, std::memory_order_relaxed);
    const Clock::duration pause = std::min(Clock::duration(-left) * kPause, kMostPause);
    pause_end_.store((now + pause).time_since_epoch().count(), std::memory_order_relaxed);
  }

  // Whether to share a loop that is about to begin.
  bool Shares(Clock::time_point now) {
    int64_t end = pause_end_.load(std::memory_order_relaxed);
    if (end == kNoPause) return true;
    if (now.time_since_epoch().count() < end) return false;
    // Unless another pause has begun since.
    pause_end_.compare_exchange_strong(end, kNoPause, std::memory_order_relaxed);
    return true;
  }
  // Reads the clock only in a pause.
  bool Shares() {
    return pause_end_.load(std::memory_order_relaxed) == kNoPause || Shares(Clock::now());
  }

 private:
  static constexpr int kPause = 20;  // times the loss
  static constexpr Clock::duration kMostPause = std::chrono::milliseconds(50);
  // Gains of earlier loops that losses may use up: a few time slices.
  static constexpr Clock::duration kMostCredit = std::chrono::milliseconds(10);
  static constexpr int64_t kNoPause = 0;

  const Sharing sharing_;
  std::atomic<int64_t> balance_{0};           // nanoseconds
  std::atomic<int64_t> pause_end_{kNoPause};  // since the epoch of the clock
};

}  // namespace sap
