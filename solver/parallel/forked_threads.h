// Threads of a process made by fork().
//
// A child has no thread but the one that called fork(). oneTBB does not know that: in the child it
// waits for workers that only the parent has. So arenas of such a process have these threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sap {

// How many forks lie between this process and the one that loaded this code: 0 but in a child. What
// was made under another number has threads, and perhaps locks, of another process.
int ForkGeneration();

class ForkedThreads {
 public:
  // Makes at most `most` threads, each started when it is first needed.
  explicit ForkedThreads(int most);
  // Waits until all tasks are done.
  ~ForkedThreads();
  ForkedThreads(const ForkedThreads&) = delete;
  ForkedThreads& operator=(const ForkedThreads&) = delete;

  // Runs the task on one of the threads. Throws if there is no memory or no thread for it.
  void Enqueue(std::function<void()> task);

 private:
  void Run();

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  size_t idle_{0};
  bool closing_{false};
  std::vector<std::thread> threads_;
};

}  // namespace sap
