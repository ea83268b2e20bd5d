// How far apart the cores of this machine are. The host of a virtual machine may place them on one
// core, side by side, or far apart, and otherwise in the next second.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "solver/parallel/spin_pause.h"

namespace sap::bench {

// Nanoseconds until another thread has seen a write and this thread its answer: the least mean of
// several rounds, of which there are few where other processes have the cores.
inline double RoundTrip_ns(std::chrono::steady_clock::duration time) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTrips = 100;
  std::atomic<int> turn{0};  // odd: the other thread's; negative: it ends
  std::thread other([&turn] {
    for (int now = 0; now >= 0; now = turn.load(std::memory_order_acquire)) {
      if (now % 2 == 1) turn.store(now + 1, std::memory_order_release);
      SpinPause();
    }
  });
  double least = std::numeric_limits<double>::infinity();
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point start = begin; start < begin + time;) {
    for (int i = 0; i < 2 * kTrips; i += 2) {
      turn.store(i + 1, std::memory_order_release);
      while (turn.load(std::memory_order_acquire) != i + 2) SpinPause();
    }
    const Clock::time_point end = Clock::now();
    least = std::min(least, std::chrono::duration<double, std::nano>(end - start).count() / kTrips);
    start = end;
  }
  turn.store(-1, std::memory_order_release);
  other.join();
  return least;
}

}  // namespace sap::bench
