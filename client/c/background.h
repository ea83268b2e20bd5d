// Calls in the background: their threads, and their ends.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "client/c/call.h"
#include "client/c/sap_islands.h"

namespace sap::c {

// Runs the task on a thread of the library. Throws if there is no memory or no thread for it. Of
// more than 64 tasks the later ones wait, so a task must not wait for another one.
void RunInBackground(std::function<void()> task);

// A call in the background as those see it who wait for it. Shared by the call and its answers, so
// that an answer may be freed, or used for another call, as soon as `done` is called.
//
//   answers complete -> done called -> done has returned -> Await returns
class BackgroundCall {
 public:
  // The answers are complete. Nothing is called or written after it.
  void End(sap_callback done, void* context);
  // Whether the call has ended. Waits for complete answers, at most that time, and then until
  // `done` has returned, which does not wait; within `done` itself it returns at once.
  bool Await(const Wait& wait) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool complete_{false};
  bool ended_{false};
  std::thread::id thread_;  // that calls `done`
};

}  // namespace sap::c
