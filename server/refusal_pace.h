// How often a server refuses: what refusals may take of its time, however many ask for one.
//
// Clients that come again as soon as they are refused would otherwise keep the server busy with
// telling them so. Refusals beyond the rate are held, and sent some at a time: who waits for one
// asks for nothing meanwhile, and many at once cost less than each by itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "server/completion_tag.h"

namespace sap {

// Thread-safe.
class RefusalPace {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RefusalPace(int solver_threads) : threads_(solver_threads) {}
  // Nothing may be held.
  ~RefusalPace();
  RefusalPace(const RefusalPace&) = delete;
  RefusalPace& operator=(const RefusalPace&) = delete;

  // Whether to refuse at once. If not, the tag is completed when it is time.
  bool NowOrLater(CompletionTag* tag);

 private:
  void ReleaseNowAndThen();
  void Refill(Clock::time_point now);

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  double left_{0};  // that may be sent at once
  Clock::time_point refilled_;
  std::deque<CompletionTag*> held_;
  bool ends_{false};
  std::thread thread_;  // once something was held
};

}  // namespace sap
