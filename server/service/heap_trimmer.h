// Returns memory to the system after large objects were freed. glibc keeps freed blocks of up to
// 32 MB for itself, so that a server that has had large problems would stay as large as then.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace sap {

// Objects above this are not kept for later problems.
inline constexpr int64_t kLargeObject_bytes = int64_t{16} << 20;

// Thread-safe, except for Sweep.
class HeapTrimmer {
 public:
  using Clock = std::chrono::steady_clock;

  // Counts bytes that have been freed, or are about to be.
  void Freed(int64_t bytes) {
    if (bytes > kLargeObject_bytes) pending_.store(true, std::memory_order_relaxed);
  }

  // Returns all that is free.
  static void Trim() { malloc_trim(0); }

  // Call periodically, on one thread. `uncounted` is resident memory that no account has: freed by
  // others, as the transport, or in use by them.
  void Sweep(Clock::time_point now, int64_t uncounted) {
    if (now < next_ || !(pending_.exchange(false) || IsDue(now, uncounted))) return;
    next_ = now + kPeriod;
    Trim();
  }

 private:
  // A trim takes time in proportion to the heap; what it could not return is in use.
  bool IsDue(Clock::time_point now, int64_t uncounted) {
    if (uncounted <= kMostUncounted_bytes) {
      uncounted_ = 0;
      pause_ = kPeriod;
      return false;
    }
    if (now < next_of_uncounted_) return false;
    const bool was_in_use = uncounted_ > 0 && uncounted > uncounted_ - kMostUncounted_bytes / 10;
    pause_ = was_in_use ? std::min(2 * pause_, kLongestPause) : kPeriod;
    uncounted_ = uncounted;
    next_of_uncounted_ = now + pause_;
    return true;
  }

  // Pages that are returned and needed again cost a fault each, some percent of the time at this
  // rate.
  static constexpr std::chrono::seconds kPeriod{2};
  static constexpr std::chrono::seconds kLongestPause{64};
  static constexpr int64_t kMostUncounted_bytes = 300'000'000;

  std::atomic<bool> pending_{false};
  Clock::time_point next_;
  Clock::time_point next_of_uncounted_;
  std::chrono::seconds pause_{kPeriod};
  int64_t uncounted_{0};  // before the last trim
};

}  // namespace sap
