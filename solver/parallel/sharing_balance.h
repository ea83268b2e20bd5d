// Whether loops gain by being shared: what helpers do of them, against what their openers wait for
// helpers that other processes keep from their processors.
//
// A helper that is preempted within an index holds the opener up for a time slice, some
// milliseconds, and a solve has hundreds of loops. Where that costs more than helpers do, loops are
// not shared for a while, of which the loss is a twentieth: sharing costs at most that, whatever
// else the machine does, and is tried again soon. Where helpers do more than is waited, loops stay
// shared, however long single waits are.
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

  // What helpers did of a loop, time without a processor left out.
  void AddHelp(Clock::duration time) {
    const int64_t help = balance_.fetch_add(time.count(), std::memory_order_relaxed) + time.count();
    if (help > kMostCredit.count()) balance_.store(kMostCredit.count(), std::memory_order_relaxed);
  }

  // What an opener waited without anything to do, until `now`.
  void AddWait(Clock::duration time, Clock::time_point now) {
    const int64_t left = balance_.fetch_sub(time.count(), std::memory_order_relaxed) - time.count();
    if (left >= 0 || sharing_ == Sharing::kAlways) return;
    balance_.store(0, std::memory_order_relaxed);
    last_look_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    pause_.store(-kPause * left, std::memory_order_relaxed);
  }

  // Whether to share a loop that is about to begin. The pause is the time between such
  // questions, of each a millisecond at most: what is longer is no part of a solve.
  bool Shares(Clock::time_point now) {
    if (pause_.load(std::memory_order_relaxed) <= 0) return true;
    const int64_t time = now.time_since_epoch().count();
    const int64_t since = time - last_look_.exchange(time, std::memory_order_relaxed);
    const int64_t passed = std::clamp(since, int64_t{0}, int64_t{kMostBetweenLoops.count()});
    return pause_.fetch_sub(passed, std::memory_order_relaxed) <= passed;
  }
  // Reads the clock only where it matters.
  bool Shares() { return pause_.load(std::memory_order_relaxed) <= 0 || Shares(Clock::now()); }

 private:
  static constexpr int64_t kPause = 20;  // times the loss
  // Gains of the past that losses may use up: a few time slices.
  static constexpr Clock::duration kMostCredit = std::chrono::milliseconds(10);
  static constexpr Clock::duration kMostBetweenLoops = std::chrono::milliseconds(1);

  const Sharing sharing_;
  std::atomic<int64_t> balance_{0};
  std::atomic<int64_t> pause_{0};      // what is left of it
  std::atomic<int64_t> last_look_{0};  // since the epoch of the clock, in a pause
};

}  // namespace sap
