// What passes between threads when a scheduler runs a task: loops whose indices the threads claim,
// and single tasks handed to another thread.
//
// The scheduler synchronizes by itself. The same order stands here once more in plain C++ atomics,
// a few per loop, because ThreadSanitizer does not see into oneTBB: with it, every access of the
// tasks to their data can be checked.
#pragma once

#include <atomic>

namespace sap {

// What happened before HandOver is seen after a TakeOver that the scheduler orders behind it.
void HandOver();
void TakeOver();

// The indices [0, count), claimed in ascending order by any number of threads. What happened before
// the constructor is seen by the body.
class TaskLoop {
 public:
  TaskLoop(int count, void (*body)(void* context, int index), void* context);

  // Claims indices and calls body(context, index) until none is left.
  void Work();

  // After every Work has returned: what the bodies did is seen from here on.
  void Finish();

 private:
  const int count_;
  void (*const body_)(void* context, int index);
  void* const context_;
  std::atomic<int> next_{0};
  std::atomic<int> workers_done_{0};
};

}  // namespace sap
