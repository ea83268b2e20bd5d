#include "solver/parallel/idle_spinners.h"

#include <pthread.h>
#include <sched.h>

#include <system_error>

#include "solver/parallel/spin_pause.h"

namespace sap {
namespace {

constexpr int kPausesPerCheck = 64;

// False if the kernel does not support SCHED_IDLE or forbids it.
bool SetIdlePriority(std::thread* thread) {
  const sched_param none{};
  return pthread_setschedparam(thread->native_handle(), SCHED_IDLE, &none) == 0;
}

}  // namespace

bool IdleSpinners::Start() {
  std::call_once(started_, [this] {
    try {
      for (int i = 0; i < num_threads_ && !stopping_; ++i) {
        threads_.emplace_back([this] { Run(); });
        // At any other priority a spinner would take processor time from working threads.
        if (priority_ == Priority::kIdle && !SetIdlePriority(&threads_.back())) Stop();
      }
    } catch (const std::system_error&) {
      // The limit of threads is reached. A session must not end the server by that: it does
      // without spinners, or with fewer.
    }
  });
  return !threads_.empty() && !stopping_;
}

IdleSpinners::~IdleSpinners() {
  Stop();
  for (std::thread& thread : threads_) thread.join();
}

void IdleSpinners::KeepSpinning() {
  spin_until_ = Clock::now().time_since_epoch() + kSpinTime;
  WakeUp();
}

void IdleSpinners::Stop() {
  stopping_ = true;
  WakeUp();
}

void IdleSpinners::WakeUp() {
  ++wake_epoch_;
  wake_epoch_.notify_all();
}

void IdleSpinners::Run() {
  while (true) {
    const unsigned seen = wake_epoch_;
    if (stopping_) return;
    if (Clock::now().time_since_epoch() >= spin_until_.load()) {
      wake_epoch_.wait(seen);
      continue;
    }
    for (int i = 0; i < kPausesPerCheck; ++i) SpinPause();
    // Without the yield the small time share of SCHED_IDLE would be consumed in slices of
    // milliseconds.
    std::this_thread::yield();
  }
}

}  // namespace sap
