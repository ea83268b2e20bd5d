// Returns memory to the system after large objects were freed. glibc keeps freed blocks of up to
// 32 MB for itself, so that a server that has had large problems would stay as large as then.
#pragma once

#include <malloc.h>

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

  // So many bytes have been freed, or are about to be.
  void Freed(int64_t bytes) {
    if (bytes > kLargeObject_bytes) pending_.store(true, std::memory_order_relaxed);
  }

  // Call periodically, on one thread.
  void Sweep(Clock::time_point now) {
    if (now < next_ || !pending_.exchange(false)) return;
    next_ = now + kPeriod;
    malloc_trim(0);
  }

 private:
  // Pages that are returned and needed again cost a fault each, some percent of the time at this
  // rate.
  static constexpr std::chrono::seconds kPeriod{2};

  std::atomic<bool> pending_{false};
  Clock::time_point next_;
};

}  // namespace sap
