// SCHED_IDLE spinners that keep cores out of deep C-states between steps of low-latency sessions.
//
// An idle core enters a sleep state within microseconds and needs tens of microseconds to wake up,
// in a virtual machine sometimes milliseconds: longer than a small solve. At SCHED_IDLE any other
// thread preempts a spinner at once, and the kernel prefers cores that run only SCHED_IDLE threads
// when it places a thread that wakes up.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace sap {

class IdleSpinners {
 public:
  // Spin time after the last call of KeepSpinning. Covers the gaps between steps at 20 steps per
  // second and more.
  static constexpr std::chrono::milliseconds kSpinTime{50};

  // Starts the spinner threads, which block until the first KeepSpinning. 0: none.
  explicit IdleSpinners(int threads);
  ~IdleSpinners();
  IdleSpinners(const IdleSpinners&) = delete;
  IdleSpinners& operator=(const IdleSpinners&) = delete;

  // Whether at least one spinner runs: the kernel may refuse SCHED_IDLE.
  bool available() const { return without_priority_ < static_cast<int>(threads_.size()); }

  // Spins for kSpinTime from now. Thread-safe; takes nanoseconds unless the spinners are blocked.
  void KeepSpinning();

 private:
  using Clock = std::chrono::steady_clock;

  void WakeUp();
  void Run();

  std::atomic<Clock::duration> spin_until_{Clock::duration::zero()};
  std::atomic<bool> stopping_{false};
  std::atomic<int> without_priority_{0};
  // A futex word instead of a mutex: a preempted spinner that held a mutex would block the threads
  // that call KeepSpinning.
  std::atomic<unsigned> wake_epoch_{0};
  std::vector<std::thread> threads_;
};

}  // namespace sap
