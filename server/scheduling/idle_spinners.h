// Threads that keep processors from falling asleep between the steps of sessions that asked for low
// latency.
//
// A processor that has nothing to do falls asleep within microseconds, and takes tens of them, in a
// virtual machine sometimes thousands, to go on: on the way of a small step more than the solve.
// These threads run at idle priority. Whatever else wants their processor has it at once, and the
// kernel, when it looks for an idle one, takes one that only has such a thread.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace sap {

class IdleSpinners {
 public:
  // From one step to the next at 20 steps per second and more.
  static constexpr std::chrono::milliseconds kAwake{50};

  // Keeps up to that many processors awake; 0: none.
  explicit IdleSpinners(int threads);
  ~IdleSpinners();
  IdleSpinners(const IdleSpinners&) = delete;
  IdleSpinners& operator=(const IdleSpinners&) = delete;

  // Whether there are some: the kernel may refuse threads idle priority.
  bool any() const { return refused_ < static_cast<int>(threads_.size()); }

  // For kAwake from now. Thread-safe; some nanoseconds, unless the threads slept.
  void StayAwake();

 private:
  using Clock = std::chrono::steady_clock;

  void WakeUp();
  void Run();

  std::atomic<Clock::duration> until_{Clock::duration::zero()};
  std::atomic<bool> ends_{false};
  std::atomic<int> refused_{0};
  // No mutex: one that such a thread holds while others have its processor would stop them.
  std::atomic<unsigned> changes_{0};
  std::vector<std::thread> threads_;
};

}  // namespace sap
