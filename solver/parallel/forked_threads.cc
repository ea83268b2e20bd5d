#include "solver/parallel/forked_threads.h"

#include <pthread.h>

#include <utility>

namespace sap {
namespace {

int generation = 0;  // written by the only thread of a child
const int registered = pthread_atfork(nullptr, nullptr, [] { ++generation; });

}  // namespace

int ForkGeneration() { return registered == 0 ? generation : 0; }

ForkedThreads::ForkedThreads(int most) : most_(most) {}

ForkedThreads::~ForkedThreads() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ForkedThreads::Enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_ <= tasks_.size() && threads_.size() < most_) {
      threads_.reserve(most_);
      threads_.emplace_back([this] { Run(); });
    }
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ForkedThreads::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace sap
