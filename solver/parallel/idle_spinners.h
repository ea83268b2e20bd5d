// SCHED_IDLE spinners that keep cores out of deep C-states between steps of low-latency sessions.
//
// An idle core enters a sleep state within microseconds and needs tens of microseconds to wake up,
// in a virtual machine sometimes milliseconds: longer than a small solve. At SCHED_IDLE any other
// thread preempts a spinner at once, and the kernel prefers cores that run only SCHED_IDLE threads
// when it places a thread that wakes up.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace sap {

class IdleSpinners {
 public:
  // Spin time after the last call of KeepSpinning. Covers the gaps between steps at 20 steps per
  // second and more.
  static constexpr std::chrono::milliseconds kSpinTime{50};

  // How the kernel schedules them. kNormal takes processor time from working threads: it is for
  // tests, since on a busy machine a thread at idle priority may have no processor for minutes.
  enum class Priority : unsigned char { kIdle, kNormal };

  // 0: none.
  explicit IdleSpinners(int threads, Priority priority = Priority::kIdle)
      : num_threads_(threads), priority_(priority) {}
  ~IdleSpinners();
  IdleSpinners(const IdleSpinners&) = delete;
  IdleSpinners& operator=(const IdleSpinners&) = delete;

  // Starts the threads at the first call, which block until KeepSpinning. Whether there are any:
  // the kernel may refuse SCHED_IDLE, or further threads. Thread-safe.
  //
  // A server without low-latency sessions has no such threads: a process that is killed keeps its
  // connections until its last thread has ended, which on a busy machine takes seconds for threads
  // at idle priority.
  bool Start();

  // Spins for kSpinTime from now. Thread-safe; takes nanoseconds unless the spinners are blocked.
  void KeepSpinning();

 private:
  using Clock = std::chrono::steady_clock;

  void Stop();
  void WakeUp();
  void Run();

  const int num_threads_;
  const Priority priority_;
  std::once_flag started_;
  std::atomic<Clock::duration> spin_until_{Clock::duration::zero()};
  std::atomic<bool> stopping_{false};
  // A futex word instead of a mutex: a preempted spinner that held a mutex would block the threads
  // that call KeepSpinning.
  std::atomic<unsigned> wake_epoch_{0};
  std::vector<std::thread> threads_;
};

}  // namespace sap
