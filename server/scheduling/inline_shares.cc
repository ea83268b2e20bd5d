#include "server/scheduling/inline_shares.h"

namespace sap {
namespace {

constexpr std::chrono::milliseconds kPeriod{10};
constexpr std::chrono::nanoseconds kAlwaysGranted = kPeriod / 2;
constexpr double kTolerance = 1.5;  // over the equal share

int64_t PeriodOf(InlineShares::Clock::time_point now) { return now.time_since_epoch() / kPeriod; }

int64_t Nanoseconds(InlineShares::Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

void InlineShares::Add(ClientAccount* account, Clock::duration time, Clock::time_point now) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const int64_t period = PeriodOf(now);
  if (period_.load(kRelaxed) != period && period_.exchange(period, kRelaxed) != period) {
    total_ns_.store(0, kRelaxed);
    clients_.store(0, kRelaxed);
  }
  ClientAccount::InlineUse& use = account->inline_use_;
  if (use.period.load(kRelaxed) != period && use.period.exchange(period, kRelaxed) != period) {
    use.used_ns.store(0, kRelaxed);
    clients_.fetch_add(1, kRelaxed);
  }
  use.used_ns.fetch_add(Nanoseconds(time), kRelaxed);
  use.uncharged_ns.fetch_add(Nanoseconds(time), kRelaxed);
  total_ns_.fetch_add(Nanoseconds(time), kRelaxed);
}

bool InlineShares::Exceeded(const ClientAccount& account, int queued_flows,
                            Clock::time_point now) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const ClientAccount::InlineUse& use = account.inline_use_;
  if (use.period.load(kRelaxed) != PeriodOf(now)) return false;
  const int64_t used_ns = use.used_ns.load(kRelaxed);
  if (used_ns < kAlwaysGranted.count()) return false;
  const int active = clients_.load(kRelaxed) + queued_flows - use.queued_flows.load(kRelaxed);
  if (active <= 1) return false;
  return static_cast<double>(used_ns) * active >
         kTolerance * static_cast<double>(total_ns_.load(kRelaxed));
}

}  // namespace sap
