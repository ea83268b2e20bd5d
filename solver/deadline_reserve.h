// What a deadline has to leave for the islands of a solve that are still to come.
//
// An island takes some time from its turn to its first norms, and from its last iterate to its
// report, whatever is left for iterations. The times here were measured on one core that had
// nothing else to do, as was the gathering of data, with which an island starts: what that takes
// now tells how much slower everything is.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace sap {

// Of one solve, by all its threads.
class DeadlineReserve {
 public:
  using Duration = std::chrono::nanoseconds;

  void Start() {
    contacts_.store(0, std::memory_order_relaxed);
    nanoseconds_.store(0, std::memory_order_relaxed);
  }

  // An island of so many contacts was gathered in this time.
  void Gathered(int contacts, Duration time) {
    contacts_.fetch_add(contacts, std::memory_order_relaxed);
    nanoseconds_.fetch_add(time.count(), std::memory_order_relaxed);
  }

  // From the last iterate of an island to its report.
  Duration TimeToReport(int contacts) const { return Slowed(contacts * kReportContact); }

  // What the reports of trees take besides, by the sum of their dofs cubed.
  Duration TimeToReportTrees(double cubed_dofs) const {
    return Slowed(std::chrono::duration_cast<Duration>(cubed_dofs * kReportCubedDof));
  }

  // Of islands with so many contacts altogether that are not iterated on.
  Duration TimeForIslands(int64_t contacts, int islands, int threads) const {
    return Slowed((contacts * (kBeginContact + kReportContact) + islands * kIsland) / threads);
  }

 private:
  static constexpr Duration kGatherContact{170};
  static constexpr Duration kBeginContact{320};
  static constexpr Duration kReportContact{210};
  static constexpr Duration kIsland{350};
  static constexpr std::chrono::duration<double, std::nano> kReportCubedDof{0.02};

  // Bounded, as fresh memory slows down the gathering alone.
  Duration Slowed(Duration measured) const {
    constexpr double kMostSlowness = 2.0;
    const auto expected =
        static_cast<double>(contacts_.load(std::memory_order_relaxed) * kGatherContact.count());
    const auto seen = static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
    const double slowness = expected > 0 ? std::clamp(seen / expected, 1.0, kMostSlowness) : 1.0;
    return std::chrono::duration_cast<Duration>(slowness * measured);
  }

  std::atomic<int64_t> contacts_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

}  // namespace sap
