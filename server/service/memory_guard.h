// The last resort against memory that no account has: the resident memory of the process.
//
//   above 80 % of the limit   what is kept for later calls is freed
//   still above               new calls and sessions are refused, sessions free all after each step
//   below 75 %                as before
//
// Whatever an account leaves out, the transport or a fragmented heap among it, then ends in refused
// calls and not with the kernel ending the process.
#pragma once

#include <cstdint>
#include <functional>

namespace sap {

struct ProcessMemory {
  int64_t resident_bytes{0};
  int64_t limit_bytes{0};  // 0: not known
};

// Not thread-safe.
class MemoryGuard {
 public:
  // How it reads the memory of the process, and frees what is kept for later calls.
  struct Calls {
    std::function<ProcessMemory()> read;
    std::function<void()> free_caches;
  };
  enum class Change : uint8_t { kNone, kShort, kEnough };

  // Reads the memory, and frees caches where there is little left.
  Change Look(const Calls& calls) {
    memory_ = calls.read();
    if (Part() > (short_ ? kEnoughPart : kShortPart)) {
      calls.free_caches();
      memory_ = calls.read();
    }
    const bool was_short = short_;
    short_ = Part() > (was_short ? kEnoughPart : kShortPart);
    if (short_ == was_short) return Change::kNone;
    return short_ ? Change::kShort : Change::kEnough;
  }

  // Whether calls are to be refused; the memory, as Look has read it.
  bool is_short() const { return short_; }
  const ProcessMemory& memory() const { return memory_; }

 private:
  static constexpr double kShortPart = 0.80;
  static constexpr double kEnoughPart = 0.75;

  double Part() const {
    if (memory_.limit_bytes <= 0) return 0;
    return static_cast<double>(memory_.resident_bytes) / static_cast<double>(memory_.limit_bytes);
  }

  ProcessMemory memory_;
  bool short_{false};
};

}  // namespace sap
