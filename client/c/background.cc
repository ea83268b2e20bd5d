#include "client/c/background.h"

#include <atomic>
#include <memory>
#include <utility>

#include "solver/parallel/forked_threads.h"
#include "solver/parallel/signals_blocked.h"

namespace sap::c {
namespace {

constexpr int kMostThreads = 64;

// Threads of one process.
struct Pool {
  const int generation = ForkGeneration();
  ForkedThreads threads{kMostThreads};
};

// Never freed: threads may still run when the process exits, and those of a parent are not in its
// child.
ForkedThreads& Threads() {
  static std::atomic<Pool*> current{nullptr};
  Pool* pool = current.load();
  while (pool == nullptr || pool->generation != ForkGeneration()) {
    auto own = std::make_unique<Pool>();
    if (current.compare_exchange_strong(pool, own.get())) pool = own.release();
  }
  return pool->threads;
}

}  // namespace

void RunInBackground(std::function<void()> task) {
  const SignalsBlocked blocked;
  Threads().Enqueue(std::move(task));
}

void BackgroundCall::End(sap_callback done, void* context) {
  {
    const std::lock_guard lock(mutex_);
    complete_ = true;
    thread_ = std::this_thread::get_id();
  }
  // Before anyone is woken: a thread that waits without end sleeps through `done`.
  if (done != nullptr) done(context);
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool BackgroundCall::Await(const Wait& wait) const {
  std::unique_lock lock(mutex_);
  const auto complete = [this] { return complete_; };
  if (wait && !changed_.wait_for(lock, *wait, complete)) return false;
  changed_.wait(lock, [&] { return ended_ || thread_ == std::this_thread::get_id(); });
  return true;
}

}  // namespace sap::c
