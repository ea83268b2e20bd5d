// Time to reserve before a deadline for what a solve does besides iterating.
//
// An island takes time until its first norms are known, and from its last iterate to its report,
// however few iterations it gets. The constants were measured on an idle core, also that of
// gathering the data of an island, which comes first: the time that gathering takes now, relative
// to its constant, is how much slower the machine is at the moment. A row counts as a contact.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace sap {

// One solve, all its threads.
class DeadlineReserve {
 public:
  using Duration = std::chrono::nanoseconds;

  // `coulomb`: of a solve with exact Coulomb friction.
  void Start(bool coulomb = false) {
    report_contact_ = kReportContact + (coulomb ? kCoulombContact : Duration(0));
    contacts_.store(0, std::memory_order_relaxed);
    nanoseconds_.store(0, std::memory_order_relaxed);
  }

  // Notes that the data of an island with `contacts` contacts were gathered in `time`.
  void Gathered(int contacts, Duration time) {
    contacts_.fetch_add(contacts, std::memory_order_relaxed);
    nanoseconds_.fetch_add(time.count(), std::memory_order_relaxed);
  }

  // From the last iterate of an island to its report.
  Duration TimeToReport(int contacts) const { return Slowed(contacts * report_contact_); }

  // Additional time of the reports of trees, by the sum of their dofs cubed.
  Duration TimeToReportTrees(double cubed_dofs) const {
    return Slowed(std::chrono::duration_cast<Duration>(cubed_dofs * kReportCubedDof));
  }

  // For this many islands, with this many contacts altogether, without iterations.
  Duration TimeForIslands(int64_t contacts, int islands, int threads) const {
    return Slowed((contacts * (kBeginContact + report_contact_) + islands * kIsland) / threads);
  }

 private:
  static constexpr Duration kGatherContact{170};
  static constexpr Duration kBeginContact{320};
  static constexpr Duration kReportContact{210};
  // The last convex answer is evaluated by the exact law, then a better iterate to go back to.
  static constexpr Duration kCoulombContact{2 * (kBeginContact - kGatherContact)};
  static constexpr Duration kIsland{350};
  static constexpr std::chrono::duration<double, std::nano> kReportCubedDof{0.02};

  // Bounded, because memory that is used for the first time slows down gathering alone.
  Duration Slowed(Duration measured) const {
    constexpr double kMostSlowness = 2.0;
    const auto expected =
        static_cast<double>(contacts_.load(std::memory_order_relaxed) * kGatherContact.count());
    const auto seen = static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
    const double slowness = expected > 0 ? std::clamp(seen / expected, 1.0, kMostSlowness) : 1.0;
    return std::chrono::duration_cast<Duration>(slowness * measured);
  }

  Duration report_contact_{kReportContact};
  std::atomic<int64_t> contacts_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

}  // namespace sap
