// Openers that wait for long sleep. The end of its loop wakes one, and so does a loop that it may
// help with. Where helpers have no processor, loops are not shared, by clocks of the test.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "solver/parallel/task_arena.h"
#include "solver/parallel/work_sharing_loops.h"

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

// Clocks that the test moves, and that stand still otherwise: one for all threads, and a processor
// time for each. They are ahead of the machine's, by which a pause of sharing never ends.
std::atomic<int64_t> moved_ns{0};
thread_local int64_t processor_time_ns = 0;
std::atomic<int> reads_of_opener{0};
thread_local bool is_opener = false;

std::chrono::steady_clock::time_point MovedTime() {
  static const auto begin = std::chrono::steady_clock::now() + std::chrono::hours(1);
  if (is_opener) ++reads_of_opener;
  return begin + std::chrono::nanoseconds(moved_ns);
}
std::chrono::steady_clock::duration MovedProcessorTime() {
  return std::chrono::nanoseconds(processor_time_ns);
}

void PassWithProcessor(std::chrono::nanoseconds time) {
  processor_time_ns += time.count();
  moved_ns += time.count();
}
void PassWithoutProcessor(std::chrono::nanoseconds time) { moved_ns += time.count(); }

// Loops of two threads, of which the second helps in one loop after the other.
class MovedLoops {
 public:
  // Opens a loop, of which the helper passes the time of an index. The opener has work of its own
  // for that long, or waits. False: the loop is not shared.
  bool Run(bool opener_waits, void (*pass)()) {
    is_opener = true;
    Indices indices{opener_waits, pass};
    if (!loops_.InviteHelper(1)) return false;
    std::atomic<bool> left{false};
    std::thread helper([&] {
      loops_.Help();
      left = true;
    });
    WorkSharingLoops::Loop* loop =
        loops_.Open(2, WorkSharingLoops::Claim::kAscending, &RunIndex, &indices);
    if (loop != nullptr) loops_.Finish(loop);
    const bool goes_on = loop != nullptr && Shares();
    while (!left) {
      PassWithoutProcessor(std::chrono::milliseconds(1));
      std::this_thread::yield();
    }
    helper.join();
    return goes_on;
  }

 private:
  struct Indices {
    bool opener_waits;
    void (*pass)();
    std::atomic<bool> helped{false};
    std::atomic<bool> passed{false};
  };

  static void RunIndex(void* context, int index) {
    auto* indices = static_cast<Indices*>(context);
    if (index == 0) {
      const std::atomic<bool>& enough = indices->opener_waits ? indices->helped : indices->passed;
      while (!enough) std::this_thread::yield();
      return;
    }
    int reads = reads_of_opener;
    indices->helped = true;
    if (indices->opener_waits) {
      // The opener reads the clock when it begins to wait, and again before it falls asleep.
      AwaitReads(reads + 1);
      reads = reads_of_opener;
      indices->pass();
      AwaitReads(reads + 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else {
      indices->pass();
    }
    indices->passed = true;
  }
  // An opener that is asleep already reads no more.
  static void AwaitReads(int reads) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (reads_of_opener < reads && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }

  bool Shares() {
    WorkSharingLoops::Loop* loop = loops_.Open(
        2, WorkSharingLoops::Claim::kAscending, [](void*, int) {}, nullptr);
    if (loop != nullptr) loops_.Finish(loop);
    return loop != nullptr;
  }

  WorkSharingLoops loops_{2, Sharing::kWhereItGains, {&MovedTime, &MovedProcessorTime}};
};

// Repeated, because the loop may end before its opener has fallen asleep.
TEST(LoopWaitsTest, LoopsAreNotSharedAfterHelpersWithoutProcessorsHaveHeldUpOne) {
  MovedLoops loops;
  for (int round = 0; round < 1000; ++round) {
    if (!loops.Run(/*opener_waits=*/true, [] { PassWithoutProcessor(10 * kLong); })) return;
  }
  FAIL() << "loops are shared whatever their helpers do";
}

TEST(LoopWaitsTest, LoopsStaySharedWhereHelpersOnlyTakeLong) {
  MovedLoops loops;
  // What this helper does is what the first of the others may be waited for.
  ASSERT_TRUE(loops.Run(/*opener_waits=*/false, [] { PassWithProcessor(kLong); }));
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(loops.Run(/*opener_waits=*/true, [] { PassWithProcessor(kLong); })) << round;
  }
}

}  // namespace
}  // namespace sap::test
