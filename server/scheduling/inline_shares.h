// Shares of the receiving threads: how much of their time each client has taken lately for solving
// small problems.
//
// Small problems are solved by the thread that received them, in the order of arrival, which knows
// no fairness. A client that takes much of this time while others are active is sent to the fair
// queue instead, for the rest of the period. Lock-free, and approximate at the ends of periods.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/scheduling/client_account.h"

namespace sap {

// Thread-safe.
class InlineShares {
 public:
  using Clock = std::chrono::steady_clock;

  // The client took this time.
  void Add(ClientAccount* account, Clock::duration time, Clock::time_point now);

  // Whether the client has had half of a thread's time in this period, and more than its share:
  // 1.5 times what an equal division among the active clients would give. `queued_flows` counts the
  // clients that wait in the queue, in each priority.
  bool Exceeded(const ClientAccount& account, int queued_flows, Clock::time_point now) const;

 private:
  std::atomic<int64_t> period_{-1};  // the current one
  std::atomic<int64_t> total_ns_{0};
  std::atomic<int> clients_{0};
};

}  // namespace sap
