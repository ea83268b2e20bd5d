#include "server/scheduling/idle_spinners.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/support/await.h"

namespace sap {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using test::Await;

nanoseconds Read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// Processor time that other threads than this one have had.
nanoseconds OfOthers() { return Read(CLOCK_PROCESS_CPUTIME_ID) - Read(CLOCK_THREAD_CPUTIME_ID); }

// Over a time in which threads that are awake have some, unless the machine is busy.
bool OthersAreIdle() {
  const nanoseconds before = OfOthers();
  std::this_thread::sleep_for(IdleSpinners::kAwake);
  return OfOthers() - before < std::chrono::microseconds(100);
}

int NumThreadsAtIdlePriority() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = entry.path().filename();
    int thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    count += sched_getscheduler(thread) == SCHED_IDLE ? 1 : 0;
  }
  return count;
}

TEST(IdleSpinnersTest, ThereAreAsManyAsWantedAtIdlePriority) {
  EXPECT_EQ(NumThreadsAtIdlePriority(), 0);
  {
    const IdleSpinners threads(3);
    EXPECT_TRUE(threads.any());
    EXPECT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 3; }));
  }
  EXPECT_EQ(NumThreadsAtIdlePriority(), 0);
}

TEST(IdleSpinnersTest, WithoutAnyThereIsNothingToWake) {
  IdleSpinners threads(0);
  EXPECT_FALSE(threads.any());
  threads.StayAwake();
}

TEST(IdleSpinnersTest, TheySleepUntilTheyAreToStayAwake) {
  const IdleSpinners threads(2);
  ASSERT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 2; }));
  EXPECT_TRUE(Await(OthersAreIdle));
}

TEST(IdleSpinnersTest, TheyAreAwakeForAWhileAndThenSleepAgain) {
  IdleSpinners threads(2);
  for (int round = 0; round < 2; ++round) {
    const nanoseconds before = OfOthers();
    EXPECT_TRUE(Await([&] {
      threads.StayAwake();
      return OfOthers() - before > milliseconds(1);
    }));
    EXPECT_TRUE(Await(OthersAreIdle));
  }
}

TEST(IdleSpinnersTest, TheyEndWhileAwake) {
  for (int round = 0; round < 100; ++round) {
    IdleSpinners threads(2);
    threads.StayAwake();
  }
  EXPECT_EQ(NumThreadsAtIdlePriority(), 0);
}

TEST(IdleSpinnersTest, AnyThreadMayKeepThemAwake) {
  IdleSpinners threads(2);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int call = 0; call < 2000; ++call) {
        threads.StayAwake();
        if (call % 1000 == 0) std::this_thread::sleep_for(2 * IdleSpinners::kAwake);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(Await(OthersAreIdle));
  const nanoseconds before = OfOthers();
  EXPECT_TRUE(Await([&] {
    threads.StayAwake();
    return OfOthers() - before > milliseconds(1);
  }));
}

}  // namespace
}  // namespace sap
