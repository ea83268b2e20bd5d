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

// Processor time of all other threads of the process.
nanoseconds OfOthers() { return Read(CLOCK_PROCESS_CPUTIME_ID) - Read(CLOCK_THREAD_CPUTIME_ID); }

// Measured over a time in which spinning threads get processor time, unless the machine is busy.
bool OthersAreIdle() {
  const nanoseconds before = OfOthers();
  std::this_thread::sleep_for(IdleSpinners::kSpinTime);
  return OfOthers() - before < std::chrono::microseconds(100);
}

// A joined thread may still be listed for a moment.
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

TEST(IdleSpinnersTest, AllRunAtIdlePriority) {
  EXPECT_EQ(NumThreadsAtIdlePriority(), 0);
  {
    const IdleSpinners threads(3);
    EXPECT_TRUE(threads.available());
    EXPECT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 3; }));
  }
  EXPECT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 0; }));
}

TEST(IdleSpinnersTest, WithoutThreadsKeepSpinningDoesNothing) {
  IdleSpinners threads(0);
  EXPECT_FALSE(threads.available());
  threads.KeepSpinning();
}

TEST(IdleSpinnersTest, TheyBlockUntilKeepSpinning) {
  const IdleSpinners threads(2);
  ASSERT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 2; }));
  EXPECT_TRUE(Await(OthersAreIdle));
}

TEST(IdleSpinnersTest, TheySpinForAWhileAndThenBlockAgain) {
  IdleSpinners threads(2);
  for (int round = 0; round < 2; ++round) {
    const nanoseconds before = OfOthers();
    EXPECT_TRUE(Await([&] {
      threads.KeepSpinning();
      return OfOthers() - before > milliseconds(1);
    }));
    EXPECT_TRUE(Await(OthersAreIdle));
  }
}

TEST(IdleSpinnersTest, TheyStopWhileSpinning) {
  for (int round = 0; round < 100; ++round) {
    IdleSpinners threads(2);
    threads.KeepSpinning();
  }
  EXPECT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 0; }));
}

TEST(IdleSpinnersTest, AnyThreadMayKeepThemSpinning) {
  IdleSpinners threads(2);
  std::vector<std::thread> calling_threads;
  for (int i = 0; i < 4; ++i) {
    calling_threads.emplace_back([&] {
      for (int call = 0; call < 2000; ++call) {
        threads.KeepSpinning();
        if (call % 1000 == 0) std::this_thread::sleep_for(2 * IdleSpinners::kSpinTime);
      }
    });
  }
  for (std::thread& thread : calling_threads) thread.join();
  EXPECT_TRUE(Await(OthersAreIdle));
  const nanoseconds before = OfOthers();
  EXPECT_TRUE(Await([&] {
    threads.KeepSpinning();
    return OfOthers() - before > milliseconds(1);
  }));
}

}  // namespace
}  // namespace sap
