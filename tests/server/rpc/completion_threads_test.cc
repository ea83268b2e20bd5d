#include "server/rpc/completion_threads.h"

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <future>

#include "server/rpc/completion_tag.h"
#include "tests/support/await.h"

namespace sap {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using test::Await;
using test::kLong;

ThreadProgress At(double time_ms, double busy_ms, uint64_t half_steps) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return {std::chrono::duration_cast<nanoseconds>(Milliseconds(time_ms)),
          std::chrono::duration_cast<nanoseconds>(Milliseconds(busy_ms)), half_steps};
}

TEST(ThreadWatchTest, ThreadWithTimeToSpareNeedsNoHelp) {
  for (const double busy : {0.0, 0.3, 0.9}) {
    ThreadWatch watch(At(1000, 300, 40));
    for (int i = 1; i <= 100; ++i) {
      EXPECT_FALSE(watch.NeedsHelp(At(1000 + 5 * i, 300 + 5 * i * busy, 40 + 2 * i))) << i;
    }
  }
}

TEST(ThreadWatchTest, IdleThreadNeedsNoHelp) {
  ThreadWatch watch(At(1000, 300, 40));
  for (int i = 1; i <= 100; ++i) EXPECT_FALSE(watch.NeedsHelp(At(1000 + 5 * i, 300, 40))) << i;
}

TEST(ThreadWatchTest, ThreadThatHadNoTimeToSpareOverSomeLooksNeedsHelp) {
  ThreadWatch watch(At(1000, 300, 40));
  bool needed = false;
  for (int i = 1; i <= 10; ++i) {
    needed = needed || watch.NeedsHelp(At(1000 + 5 * i, 300 + 5 * i, 40 + 20 * i));
  }
  EXPECT_TRUE(needed);
}

// As where another program had the processor.
TEST(ThreadWatchTest, ThreadThatHadNoTimeToSpareForMomentsNeedsNoHelp) {
  ThreadWatch watch(At(1000, 300, 40));
  double busy = 300;
  for (int i = 1; i <= 100; ++i) {
    busy += i % 4 == 0 ? 5 : 4;
    EXPECT_FALSE(watch.NeedsHelp(At(1000 + 5 * i, busy, 40 + 20 * i))) << i;
  }
}

TEST(ThreadWatchTest, ThreadInOneStepAllTheWhileNeedsHelpEvenAsleep) {
  ThreadWatch watch(At(1000, 300, 41));
  EXPECT_TRUE(watch.NeedsHelp(At(1005, 300, 41)));
}

// gRPC reads and parses a message before the queue hands over its step.
TEST(ThreadWatchTest, ThreadAtWorkBetweenTwoStepsNeedsHelp) {
  ThreadWatch watch(At(1000, 300, 40));
  EXPECT_TRUE(watch.NeedsHelp(At(1005, 304, 40)));
}

TEST(ThreadWatchTest, LooksAreRareWhileNothingHappensAndFrequentAgainOnceItDoes) {
  ThreadWatch watch(At(1000, 300, 40));
  const nanoseconds shortest = watch.wait();
  for (int i = 1; i <= 20; ++i) {
    const nanoseconds last = watch.wait();
    EXPECT_FALSE(watch.NeedsHelp(At(1000 + 500 * i, 300, 40)));
    EXPECT_GE(watch.wait(), last);
  }
  EXPECT_GE(watch.wait(), 10 * shortest);
  EXPECT_LE(watch.wait(), milliseconds(500));
  EXPECT_FALSE(watch.NeedsHelp(At(12'000, 301, 42)));
  EXPECT_EQ(watch.wait(), shortest);
}

TEST(NextStintTest, StintsGrowWhileTheyAreNeededAgainAtOnce) {
  const nanoseconds first = NextStint(nanoseconds(0), milliseconds(5));
  nanoseconds stint = first;
  for (int i = 0; i < 20; ++i) {
    const nanoseconds next = NextStint(stint, milliseconds(5));
    EXPECT_GE(next, stint);
    stint = next;
  }
  EXPECT_GE(stint, 10 * first);
  EXPECT_LE(stint, std::chrono::seconds(1));
  EXPECT_EQ(NextStint(stint, std::chrono::seconds(10)), first);
}

class Step final : public CompletionTag {
 public:
  Step(grpc::CompletionQueue* queue, std::function<void()> work) : work_(std::move(work)) {
    alarm_.Set(queue, gpr_time_0(GPR_CLOCK_MONOTONIC), this);
  }
  void Complete(bool) override { work_(); }

 private:
  const std::function<void()> work_;
  grpc::Alarm alarm_;
};

class CompletionThreadsTest : public testing::Test {
 protected:
  // Has the queue call this.
  void Post(std::function<void()> work) { steps_.emplace_back(&queue_, std::move(work)); }

  grpc::CompletionQueue queue_;
  std::deque<Step> steps_;
};

// Each step ends when the next one has begun: with fewer threads none of them would.
TEST_F(CompletionThreadsTest, OtherThreadsTakeStepsWhileSomeAreStuck) {
  constexpr int kThreads = 3;
  std::array<std::promise<void>, kThreads> begun;
  std::array<std::promise<bool>, kThreads> ended;
  CompletionThreads threads(&queue_, kThreads);
  for (int i = 0; i < kThreads; ++i) {
    Post([&, i] {
      begun[i].set_value();
      ended[i].set_value(i + 1 == kThreads ||
                         begun[i + 1].get_future().wait_for(kLong) == std::future_status::ready);
    });
  }
  for (int i = 0; i < kThreads; ++i) EXPECT_TRUE(ended[i].get_future().get()) << i;
}

TEST_F(CompletionThreadsTest, FirstThreadServesAloneAgainOnceItKeepsUp) {
  CompletionThreads threads(&queue_, 2);
  std::promise<std::thread::id> first;
  std::promise<std::thread::id> second;
  std::promise<bool> helped;
  Post([&] {
    first.set_value(std::this_thread::get_id());
    helped.set_value(second.get_future().wait_for(kLong) == std::future_status::ready);
  });
  const std::thread::id always = first.get_future().get();
  Post([&] { second.set_value(std::this_thread::get_id()); });
  ASSERT_TRUE(helped.get_future().get());

  // Two threads that wait for steps would hardly leave so many to one of them. The machine may be
  // too busy for that at times, so it is asked for once.
  int in_a_row = 0;
  EXPECT_TRUE(Await([&] {
    std::promise<std::thread::id> server;
    Post([&server] { server.set_value(std::this_thread::get_id()); });
    in_a_row = server.get_future().get() == always ? in_a_row + 1 : 0;
    return in_a_row == 30;
  }));
}

TEST_F(CompletionThreadsTest, StepsLeftInTheQueueAreTakenAtTheEnd) {
  std::atomic<int> taken{0};
  for (int i = 0; i < 100; ++i) Post([&] { ++taken; });
  { const CompletionThreads threads(&queue_, 2); }
  EXPECT_EQ(taken, 100);
}

}  // namespace
}  // namespace sap
