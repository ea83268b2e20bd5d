#include "server/scheduling/idle_spinners.h"

#include <sched.h>

#include "solver/parallel/spin_pause.h"

namespace sap {
namespace {

constexpr int kPausesPerCheck = 64;

// False if the kernel does not support SCHED_IDLE or forbids it.
bool SetIdlePriority() {
  const sched_param none{};
  return sched_setscheduler(0, SCHED_IDLE, &none) == 0;
}

}  // namespace

IdleSpinners::IdleSpinners(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

IdleSpinners::~IdleSpinners() {
  stopping_ = true;
  WakeUp();
  for (std::thread& thread : threads_) thread.join();
}

void IdleSpinners::KeepSpinning() {
  spin_until_ = Clock::now().time_since_epoch() + kSpinTime;
  WakeUp();
}

void IdleSpinners::WakeUp() {
  ++wake_epoch_;
  wake_epoch_.notify_all();
}

void IdleSpinners::Run() {
  // At any other priority a spinner would take processor time from working threads.
  if (!SetIdlePriority()) {
    ++without_priority_;
    return;
  }
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
