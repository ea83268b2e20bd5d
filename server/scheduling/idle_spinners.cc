#include "server/scheduling/idle_spinners.h"

#include <sched.h>

#include "solver/parallel/spin_pause.h"

namespace sap {
namespace {

constexpr int kPausesPerLook = 64;

// False: the kernel has no such thing, or forbids it.
bool TakeIdlePriority() {
  const sched_param none{};
  return sched_setscheduler(0, SCHED_IDLE, &none) == 0;
}

}  // namespace

IdleSpinners::IdleSpinners(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

IdleSpinners::~IdleSpinners() {
  ends_ = true;
  WakeUp();
  for (std::thread& thread : threads_) thread.join();
}

void IdleSpinners::StayAwake() {
  until_ = Clock::now().time_since_epoch() + kAwake;
  WakeUp();
}

void IdleSpinners::WakeUp() {
  ++changes_;
  changes_.notify_all();
}

void IdleSpinners::Run() {
  // At any other priority it would take time from those who have work.
  if (!TakeIdlePriority()) {
    ++refused_;
    return;
  }
  while (true) {
    const unsigned seen = changes_;
    if (ends_) return;
    if (Clock::now().time_since_epoch() >= until_.load()) {
      changes_.wait(seen);
      continue;
    }
    for (int i = 0; i < kPausesPerLook; ++i) SpinPause();
    // Or the little share of its priority would come as milliseconds at a time.
    std::this_thread::yield();
  }
}

}  // namespace sap
