#include "solver/parallel/idle_spinners.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "tests/support/await.h"
#include "tests/support/no_new_threads.h"

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

// Spinners that get a processor whatever else the machine does.
struct NormalSpinners : IdleSpinners {
  explicit NormalSpinners(int threads) : IdleSpinners(threads, Priority::kNormal) {}
};

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

TEST(IdleSpinnersTest, TheyRunAtIdlePriorityOnceTheyAreStarted) {
  EXPECT_EQ(NumThreadsAtIdlePriority(), 0);
  {
    IdleSpinners threads(3);
    EXPECT_EQ(NumThreadsAtIdlePriority(), 0);
    EXPECT_TRUE(threads.Start());
    EXPECT_TRUE(threads.Start());
    EXPECT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 3; }));
  }
  EXPECT_TRUE(Await([] { return NumThreadsAtIdlePriority() == 0; }));
}

// From then on, for this process.
bool RefusePriorities() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setscheduler, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(IdleSpinnersTest, WhereTheKernelRefusesIdlePriorityTheFirstStartSaysSo) {
  EXPECT_EXIT(
      {
        if (!RefusePriorities()) std::_Exit(2);
        bool started = false;
        {
          IdleSpinners threads(2);
          started = threads.Start() || threads.Start();
          threads.KeepSpinning();
        }
        std::_Exit(started ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(IdleSpinnersTest, AtTheLimitOfThreadsThereAreNone) {
  const test::NoNewThreads no_new_threads;
  IdleSpinners threads(2);
  EXPECT_FALSE(threads.Start());
  threads.KeepSpinning();
}

TEST(IdleSpinnersTest, WithoutThreadsKeepSpinningDoesNothing) {
  IdleSpinners threads(0);
  EXPECT_FALSE(threads.Start());
  threads.KeepSpinning();
}

TEST(IdleSpinnersTest, TheyBlockUntilKeepSpinning) {
  NormalSpinners threads(2);
  EXPECT_TRUE(threads.Start());
  EXPECT_TRUE(Await(OthersAreIdle));
}

TEST(IdleSpinnersTest, TheySpinForAWhileAndThenBlockAgain) {
  NormalSpinners threads(2);
  EXPECT_TRUE(threads.Start());
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
    NormalSpinners threads(2);
    EXPECT_TRUE(threads.Start());
    threads.KeepSpinning();
  }
}

TEST(IdleSpinnersTest, AnyThreadMayKeepThemSpinning) {
  NormalSpinners threads(2);
  EXPECT_TRUE(threads.Start());
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
