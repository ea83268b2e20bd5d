// Sleeping on a word in memory until another thread changes it.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace sap {

// Sleeps while the word is `seen`; also returns for no reason. std::atomic::wait of libstdc++ gives
// the processor away four times before it sleeps, which next to another busy process costs a time
// slice each, and leaves the thread behind it when it is woken.
inline void FutexWait(const std::atomic<uint32_t>* word, uint32_t seen) {
  static_assert(sizeof(*word) == sizeof(uint32_t));
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr);
}

inline void FutexWakeAll(const std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

}  // namespace sap
