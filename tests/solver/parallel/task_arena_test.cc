#include "solver/parallel/task_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace sap::test {
namespace {

constexpr std::chrono::seconds kPatience{300};

// Lets its callers go only once `expected` of them are here; false if that takes too long.
class Barrier {
 public:
  explicit Barrier(int expected) : missing_(expected) {}

  bool ArriveAndWait() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0) all_here_.notify_all();
    return all_here_.wait_for(lock, kPatience, [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int missing_;
};

TEST(TaskArenaTest, TasksThatWaitForEachOtherBothFinish) {
  TaskArena arena(2, Sharing::kAlways);
  for (int round = 0; round < 20; ++round) {
    Barrier barrier(2);
    std::atomic<int> met{0};
    arena.ParallelFor(2, [&](int) { met += barrier.ArriveAndWait() ? 1 : 0; });
    EXPECT_EQ(met, 2);
  }
}

TEST(TaskArenaTest, AsManyTasksRunAtOnceAsThereAreThreads) {
  TaskArena arena(5, Sharing::kAlways);
  Barrier barrier(5);
  std::atomic<int> met{0};
  arena.ParallelFor(5, [&](int) { met += barrier.ArriveAndWait() ? 1 : 0; });
  EXPECT_EQ(met, 5);
}

TEST(TaskArenaTest, NeverMoreTasksRunAtOnceThanThereAreThreads) {
  for (const int threads : {1, 2, 3}) {
    TaskArena arena(threads, Sharing::kAlways);
    std::atomic<int> running{0};
    std::atomic<int> most{0};
    arena.ParallelFor(200, [&](int) {
      const int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::yield();
      --running;
    });
    EXPECT_LE(most, threads);
  }
}

TEST(TaskArenaTest, EveryIndexIsTakenOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> taken(count);
      arena.ParallelFor(count, [&](int i) { ++taken[i]; });
      arena.ParallelForPieces(count, [&](int i) { taken[i] += 10; });
      for (int i = 0; i < count; ++i) EXPECT_EQ(taken[i], 11) << i;
    }
  }
}

// Loops of a microsecond one after another, so that helpers come to each in all stages of its life.
TEST(TaskArenaTest, WhatALoopWroteIsSeenByTheNext) {
  for (const int threads : {2, 3, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    std::vector<int> value(37, 0);
    const auto size = static_cast<int>(value.size());
    for (int round = 0; round < 5000; ++round) {
      arena.ParallelForPieces(size, [&](int i) { value[i] += i; });
      arena.ParallelFor(size, [&](int i) { value[size - 1 - i] -= size - 1 - i - 1; });
    }
    EXPECT_EQ(value, std::vector<int>(size, 5000));
  }
}

TEST(TaskArenaTest, AThreadStartsWithItsOwnPiecesInEveryLoop) {
  TaskArena arena(2, Sharing::kAlways);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round) {
    Barrier barrier(2);
    std::atomic<int> first_of_helper{-1};
    arena.ParallelForPieces(8, [&](int i) {
      int none = -1;
      const bool helps = std::this_thread::get_id() != caller;
      if (helps ? first_of_helper.compare_exchange_strong(none, i) : i == 0) {
        EXPECT_TRUE(barrier.ArriveAndWait());
      }
    });
    EXPECT_EQ(first_of_helper, 4);
  }
}

TEST(TaskArenaTest, MoreOpenLoopsThanFitRunOnTheirCallers) {
  TaskArena arena(2, Sharing::kAlways);
  std::atomic<int> sum{0};
  const auto nest = [&](auto&& self, int depth) -> void {
    if (depth == 0) {
      ++sum;
    } else {
      arena.ParallelFor(2, [&](int) { self(self, depth - 1); });
    }
  };
  nest(nest, 12);
  EXPECT_EQ(sum, 1 << 12);
}

// A helper that spins for loops leaves when a task waits for its thread.
TEST(TaskArenaTest, AHelperLeavesForATaskThatWaits) {
  struct Shared {
    std::atomic<bool> stop{false};
    std::atomic<bool> stopped{false};
    std::atomic<bool> ran{false};
  } shared;
  TaskArena arena(2, Sharing::kAlways);
  arena.Enqueue(
      [](void* context) noexcept {
        auto* seen = static_cast<Shared*>(context);
        while (!seen->stop) std::this_thread::yield();
        seen->stopped = true;
      },
      &shared);
  arena.ParallelFor(2, [](int) {});
  arena.Enqueue([](void* context) noexcept { static_cast<Shared*>(context)->ran = true; }, &shared);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!shared.ran && std::chrono::steady_clock::now() < give_up) {
    arena.ParallelFor(2, [](int) {});
  }
  EXPECT_TRUE(shared.ran);
  shared.stop = true;
  while (!shared.stopped) std::this_thread::yield();
}

// Helpers leave after 500 us without a loop. A loop that is opened at that moment must not count on
// one that is on its way out: it would run without it, however long it takes.
TEST(TaskArenaTest, ALoopOpenedWhileHelpersLeaveHasAllItsThreads) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 4000;
  TaskArena arena(kThreads, Sharing::kAlways);
  for (int round = 0; round < kRounds; ++round) {
    const auto open_at =
        std::chrono::steady_clock::now() + std::chrono::microseconds(480 + round % 80);
    while (std::chrono::steady_clock::now() < open_at) {
    }
    Barrier barrier(kThreads);
    std::atomic<int> met{0};
    arena.ParallelFor(kThreads, [&](int) { met += barrier.ArriveAndWait() ? 1 : 0; });
    ASSERT_EQ(met, kThreads) << "round " << round;
  }
}

TEST(TaskArenaTest, IndicesStartInAscendingOrder) {
  TaskArena arena(3, Sharing::kAlways);
  std::mutex mutex;
  std::vector<int> order;
  arena.ParallelFor(300, [&](int i) {
    const std::lock_guard lock(mutex);
    order.push_back(i);
  });
  ASSERT_EQ(order.size(), 300u);
  // Between claiming an index and noting it, the other threads may note theirs, one each at least;
  // none can be late by the length of the loop.
  EXPECT_LT(order.front(), 3);
}

TEST(TaskArenaTest, WithOneThreadEverythingRunsOnTheCaller) {
  TaskArena arena(1, Sharing::kAlways);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<int> order;
  arena.ParallelFor(10, [&](int i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// Task i waits for up to three of those before it.
TaskOrder RandomOrder(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<int>> after(count);
  TaskOrder order;
  order.num_before.assign(count, 0);
  for (int i = 1; i < count; ++i) {
    const int number = static_cast<int>(random() % 4);
    for (int k = 0; k < number; ++k, ++order.num_before[i]) after[random() % i].push_back(i);
  }
  order.after_start.assign(1, 0);
  for (int i = 0; i < count; ++i) {
    if (order.num_before[i] == 0) order.first.push_back(i);
    order.after.insert(order.after.end(), after[i].begin(), after[i].end());
    order.after_start.push_back(static_cast<int>(order.after.size()));
  }
  return order;
}

TEST(TaskArenaTest, EveryTaskIsDoneOnceAfterThoseItWaitsFor) {
  for (const int threads : {1, 2, 3, 7, 16}) {
    TaskArena arena(threads, Sharing::kAlways);
    for (unsigned seed = 0; seed < 50; ++seed) {
      const TaskOrder order = RandomOrder(static_cast<int>(seed) * 7, seed);
      std::vector<int> state(order.size());
      std::vector<int> missing = order.num_before;  // not atomic: what came before is seen
      std::vector<std::atomic<int>> done(order.size());
      std::mutex mutex;
      arena.ParallelForTasks(order, state.data(), [&](int task) {
        const std::lock_guard lock(mutex);
        EXPECT_EQ(missing[task], 0);
        EXPECT_EQ(++done[task], 1);
        for (const int next : order.waiting_for(task)) --missing[next];
      });
      for (int i = 0; i < order.size(); ++i) EXPECT_EQ(done[i], 1) << i;
    }
  }
}

// What a task has written is seen by the one that waited for it.
TEST(TaskArenaTest, ATaskSeesWhatThoseBeforeItWrote) {
  constexpr int kLeaves = 1000;
  // A binary tree: task i >= kLeaves waits for two.
  TaskOrder order;
  for (int i = 0; i < kLeaves; ++i) order.first.push_back(i);
  order.num_before.assign(2 * kLeaves - 1, 2);
  std::fill_n(order.num_before.begin(), kLeaves, 0);
  for (int i = 0; i < 2 * kLeaves - 1; ++i) {
    order.after_start.push_back(i);
    if (i < 2 * kLeaves - 2) order.after.push_back(kLeaves + i / 2);
  }
  order.after_start.push_back(2 * kLeaves - 2);
  TaskArena arena(3, Sharing::kAlways);
  for (int round = 0; round < 20; ++round) {
    std::vector<int> state(order.size());
    std::vector<int> leaves(order.size(), 1);
    arena.ParallelForTasks(order, state.data(), [&](int task) {
      if (task < kLeaves) return;
      leaves[task] = leaves[2 * (task - kLeaves)] + leaves[2 * (task - kLeaves) + 1];
    });
    EXPECT_EQ(leaves.back(), kLeaves);
  }
}

// Task 2 waits for task 1 alone, and meets task 0 while that is still busy.
TEST(TaskArenaTest, ATaskBeginsWhileOthersThatItDoesNotWaitForAreBusy) {
  const TaskOrder order{{0, 1}, {0, 0, 1}, {0, 0, 1, 1}, {2}};
  TaskArena arena(2, Sharing::kAlways);
  Barrier barrier(2);
  std::atomic<int> met{0};
  std::vector<int> state(order.size());
  arena.ParallelForTasks(order, state.data(), [&](int task) {
    if (task != 1) met += barrier.ArriveAndWait() ? 1 : 0;
  });
  EXPECT_EQ(met, 2);
}

TEST(TaskArenaTest, NestedLoopsFinish) {
  TaskArena arena(3, Sharing::kAlways);
  std::atomic<int> sum{0};
  arena.ParallelFor(7, [&](int i) {
    arena.ParallelFor(
        11, [&](int j) { arena.ParallelFor(3, [&](int k) { sum += 100 * i + 10 * j + k; }); });
  });
  int expected = 0;
  for (int i = 0; i < 7; ++i) {
    for (int j = 0; j < 11; ++j) {
      for (int k = 0; k < 3; ++k) expected += 100 * i + 10 * j + k;
    }
  }
  EXPECT_EQ(sum, expected);
}

// A thread that waits for its inner loop takes no other index of the outer one meanwhile: that
// would run tasks within tasks, and what one thread keeps for the first would be overwritten.
TEST(TaskArenaTest, WaitingThreadTakesNoTaskOfAnotherLoop) {
  TaskArena arena(4, Sharing::kAlways);
  std::atomic<int> nested{0};
  arena.ParallelFor(64, [&](int) {
    thread_local int depth = 0;
    ++depth;
    if (depth > 1) ++nested;
    arena.ParallelFor(8, [](int) { std::this_thread::yield(); });
    --depth;
  });
  EXPECT_EQ(nested, 0);
}

// Two islands, of which one is done at once: both threads work on the loops of the other.
TEST(TaskArenaTest, WaitingThreadHelpsWithLoopsOpenedWithinItsLoop) {
  TaskArena arena(2, Sharing::kAlways);
  std::atomic<int> present{0};
  arena.ParallelFor(2, [&](int island) {
    if (island == 0) return;
    arena.ParallelFor(2, [&](int) {
      ++present;
      while (present < 2) std::this_thread::yield();
    });
  });
  EXPECT_EQ(present, 2);
}

TEST(ForChunksTest, ChunksTileTheRangeTheSameWayForAnyArena) {
  TaskArena arena(3, Sharing::kAlways);
  for (const int size : {1, 3, 7, 100}) {
    for (const int count : {0, 1, 6, 7, 8, 50}) {
      for (TaskArena* in : {static_cast<TaskArena*>(nullptr), &arena}) {
        for (const int nanoseconds : {1, 1'000'000}) {
          std::vector<std::atomic<int>> chunk_of(count);
          for (auto& chunk : chunk_of) chunk = -1;
          ForChunks(in, 10, 10 + count, {size, nanoseconds}, [&](int begin, int end, int chunk) {
            for (int i = begin; i < end; ++i) chunk_of[i - 10] = chunk;
          });
          for (int i = 0; i < count; ++i) EXPECT_EQ(chunk_of[i], i / size);
        }
      }
    }
  }
}

TEST(TaskArenaTest, EnqueuedTaskRunsOnAnotherThreadWhileTheCallerGoesOn) {
  for (const int threads : {1, 2}) {
    TaskArena arena(threads, Sharing::kAlways);
    struct Shared {
      Barrier barrier{2};
      std::thread::id ran_on;
      std::atomic<bool> finished{false};
    } shared;
    arena.Enqueue(
        [](void* context) noexcept {
          auto* seen = static_cast<Shared*>(context);
          seen->ran_on = std::this_thread::get_id();
          seen->barrier.ArriveAndWait();
          seen->finished = true;  // the last touch of what lives with the test
        },
        &shared);
    EXPECT_TRUE(shared.barrier.ArriveAndWait());
    EXPECT_NE(shared.ran_on, std::this_thread::get_id());
    while (!shared.finished) std::this_thread::yield();
  }
}

// Loops of fewer and of more indices than threads, so that helpers that are late for one find
// another in its place.
TEST(TaskArenaTest, LoopsOfSeveralCallersShareTheArena) {
  for (const int threads : {2, 16}) {
    TaskArena arena(threads, Sharing::kAlways);
    std::atomic<int> sum{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (int round = 0; round < 50; ++round) {
          arena.ParallelFor(20, [&](int i) {
            sum += i;
            arena.ParallelForPieces(3, [&](int j) { sum += j; });
          });
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(sum, 4 * 50 * (190 + 20 * 3));
  }
}

}  // namespace
}  // namespace sap::test
