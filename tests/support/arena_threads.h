// The worker threads of an arena, for tests of memory: oneTBB allocates when one starts.
#pragma once

#include <atomic>
#include <thread>

#include "solver/parallel/task_arena.h"

namespace sap::test {

// Returns once all threads of the arena run.
inline void StartThreads(TaskArena* arena) {
  std::atomic<int> started{0};
  arena->ParallelFor(arena->num_threads(), [&](int) {
    ++started;
    while (started < arena->num_threads()) std::this_thread::yield();
  });
}

}  // namespace sap::test
