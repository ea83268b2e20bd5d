// Openers that wait for long sleep. The end of its loop wakes one, and so does a loop that it may
// help with. Where helpers have no processor, loops are not shared.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "solver/parallel/task_arena.h"

namespace sap::test {
namespace {

// Longer than openers spin.
constexpr std::chrono::milliseconds kLong{5};

void ComputeFor(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Runs a loop of two indices, the second on a helper.
template <typename Body>
void LoopWithHelper(TaskArena* arena, Body&& body) {
  const std::thread::id opener = std::this_thread::get_id();
  std::atomic<bool> helped{false};
  arena->ParallelFor(2, [&](int) {
    if (std::this_thread::get_id() == opener) {
      while (!helped) std::this_thread::yield();
    } else {
      helped = true;
      body();
    }
  });
}

TEST(LoopWaitsTest, AnOpenerThatSleepsGoesOnWhenItsLoopIsDone) {
  TaskArena arena(2, Sharing::kAlways);
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> done{false};
    LoopWithHelper(&arena, [&] {
      std::this_thread::sleep_for(kLong);
      done = true;
    });
    ASSERT_TRUE(done);
  }
}

// Waits around the time at which openers fall asleep, so that some are woken before they sleep.
TEST(LoopWaitsTest, NoWakeUpIsLostWhenAnOpenerFallsAsleep) {
  TaskArena arena(2, Sharing::kAlways);
  for (int round = 0; round < 4000; ++round) {
    std::atomic<bool> done{false};
    LoopWithHelper(&arena, [&] {
      ComputeFor(std::chrono::microseconds(40 + round % 20));
      done = true;
    });
    ASSERT_TRUE(done);
  }
}

// The inner loop ends only if the sleeping opener of the outer one joins it.
TEST(LoopWaitsTest, AnOpenerThatSleepsHelpsWithALoopOpenedWithinItsLoop) {
  TaskArena arena(2, Sharing::kAlways);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> present{0};
    LoopWithHelper(&arena, [&] {
      if (round % 2 == 0) std::this_thread::sleep_for(kLong);
      arena.ParallelFor(2, [&](int) {
        ++present;
        while (present < 2) std::this_thread::yield();
      });
    });
    ASSERT_EQ(present, 2);
  }
}

TEST(LoopWaitsTest, SeveralOpenersSleepAndGoOn) {
  TaskArena arena(4, Sharing::kAlways);
  for (int round = 0; round < 30; ++round) {
    std::atomic<int> done{0};
    arena.ParallelFor(4, [&](int) {
      arena.ParallelFor(4, [&](int i) {
        std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
        ++done;
      });
    });
    ASSERT_EQ(done, 16);
  }
}

// A helper that sleeps stands for one that other processes have displaced. Repeated, because on a
// busy machine the loop after it may begin when the pause has ended.
TEST(LoopWaitsTest, LoopsAreNotSharedAfterHelpersWithoutProcessorsHaveHeldUpOne) {
  TaskArena arena(2);
  const std::thread::id opener = std::this_thread::get_id();
  for (int round = 0; round < 1000; ++round) {
    std::atomic<bool> helped{false};
    arena.ParallelFor(2, [&](int) {
      if (std::this_thread::get_id() == opener) {
        ComputeFor(kLong);
      } else {
        helped = true;
        std::this_thread::sleep_for(10 * kLong);
      }
    });
    if (!helped || arena.has_helpers()) continue;
    std::atomic<bool> shared{false};
    arena.ParallelFor(100, [&](int) {
      if (std::this_thread::get_id() != opener) shared = true;
    });
    if (!shared) return;
  }
  FAIL() << "loops are shared whatever their helpers do";
}

// Repeated, because other processes may displace helpers.
TEST(LoopWaitsTest, LoopsStaySharedWhereHelpersOnlyTakeLong) {
  const std::thread::id opener = std::this_thread::get_id();
  for (int attempt = 0; attempt < 50; ++attempt) {
    TaskArena arena(2);
    int helped = 0;
    for (int round = 0; round < 20; ++round) {
      std::atomic<bool> by_helper{false};
      arena.ParallelFor(2, [&](int) {
        if (std::this_thread::get_id() != opener) {
          by_helper = true;
          ComputeFor(kLong);
        } else {
          // Leaves the other index to the helper, if there is one.
          const auto give_up = std::chrono::steady_clock::now() + 4 * kLong;
          while (!by_helper && std::chrono::steady_clock::now() < give_up) {
            std::this_thread::yield();
          }
        }
      });
      if (by_helper) ++helped;
    }
    if (helped > 10) return;
  }
  FAIL() << "loops are not shared although each gains by it";
}

}  // namespace
}  // namespace sap::test
