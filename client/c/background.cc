#include "client/c/background.h"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <utility>

#include "solver/parallel/forked_threads.h"

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

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void RunInBackground(std::function<void()> task) {
  const SignalsBlocked blocked;
  Threads().Enqueue(std::move(task));
}

}  // namespace sap::c
