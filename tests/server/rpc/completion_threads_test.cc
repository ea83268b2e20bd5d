#include "server/rpc/completion_threads.h"

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "server/rpc/completion_tag.h"
#include "tests/support/await.h"

namespace sap {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using test::Await;
using test::kLong;

ThreadSample At(double time_ms, double busy_ms, uint64_t transitions) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return {std::chrono::duration_cast<nanoseconds>(Milliseconds(time_ms)),
          std::chrono::duration_cast<nanoseconds>(Milliseconds(busy_ms)), transitions};
}

TEST(SaturationDetectorTest, ThreadWithTimeToSpareIsNotSaturated) {
  for (const double busy : {0.0, 0.3, 0.9}) {
    SaturationDetector detector(At(1000, 300, 40));
    for (int i = 1; i <= 100; ++i) {
      EXPECT_FALSE(detector.IsSaturated(At(1000 + 5 * i, 300 + 5 * i * busy, 40 + 2 * i))) << i;
    }
  }
}

TEST(SaturationDetectorTest, IdleThreadIsNotSaturated) {
  SaturationDetector detector(At(1000, 300, 40));
  for (int i = 1; i <= 100; ++i) EXPECT_FALSE(detector.IsSaturated(At(1000 + 5 * i, 300, 40))) << i;
}

TEST(SaturationDetectorTest, ThreadBusyOverAWholePeriodIsSaturated) {
  SaturationDetector detector(At(1000, 300, 40));
  bool saturated = false;
  for (int i = 1; i <= 10; ++i) {
    saturated = saturated || detector.IsSaturated(At(1000 + 5 * i, 300 + 5 * i, 40 + 20 * i));
  }
  EXPECT_TRUE(saturated);
}

// Short busy periods, as when another process has the processor.
TEST(SaturationDetectorTest, ThreadBusyForMomentsIsNotSaturated) {
  SaturationDetector detector(At(1000, 300, 40));
  double busy = 300;
  for (int i = 1; i <= 100; ++i) {
    busy += i % 4 == 0 ? 5 : 4;
    EXPECT_FALSE(detector.IsSaturated(At(1000 + 5 * i, busy, 40 + 20 * i))) << i;
  }
}

TEST(SaturationDetectorTest, ThreadInOneHandlerSinceTheLastSampleIsSaturatedEvenAsleep) {
  SaturationDetector detector(At(1000, 300, 41));
  EXPECT_TRUE(detector.IsSaturated(At(1005, 300, 41)));
}

// gRPC reads and parses a message before the queue returns its tag.
TEST(SaturationDetectorTest, ThreadRunningBetweenTwoHandlersIsSaturated) {
  SaturationDetector detector(At(1000, 300, 40));
  EXPECT_TRUE(detector.IsSaturated(At(1005, 304, 40)));
}

TEST(SaturationDetectorTest, SamplesAreRareWhileIdleAndFrequentAgainUnderLoad) {
  SaturationDetector detector(At(1000, 300, 40));
  const nanoseconds shortest = detector.poll_interval();
  for (int i = 1; i <= 20; ++i) {
    const nanoseconds last = detector.poll_interval();
    EXPECT_FALSE(detector.IsSaturated(At(1000 + 500 * i, 300, 40)));
    EXPECT_GE(detector.poll_interval(), last);
  }
  EXPECT_GE(detector.poll_interval(), 10 * shortest);
  EXPECT_LE(detector.poll_interval(), milliseconds(500));
  EXPECT_FALSE(detector.IsSaturated(At(12'000, 301, 42)));
  EXPECT_EQ(detector.poll_interval(), shortest);
}

TEST(NextAssistTimeTest, AssistTimeGrowsWhileSaturationReturnsAtOnce) {
  const nanoseconds first = NextAssistTime(nanoseconds(0), milliseconds(5));
  nanoseconds assist_time = first;
  for (int i = 0; i < 20; ++i) {
    const nanoseconds next = NextAssistTime(assist_time, milliseconds(5));
    EXPECT_GE(next, assist_time);
    assist_time = next;
  }
  EXPECT_GE(assist_time, 10 * first);
  EXPECT_LE(assist_time, std::chrono::seconds(1));
  EXPECT_EQ(NextAssistTime(assist_time, std::chrono::seconds(10)), first);
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
  // Makes the queue call Complete.
  void Post(int queue, std::function<void()> work) {
    steps_.emplace_back(&queues_[queue], std::move(work));
  }
  void Post(std::function<void()> work) { Post(0, std::move(work)); }

  // The first queues.
  std::vector<grpc::CompletionQueue*> Queues(int count) {
    std::vector<grpc::CompletionQueue*> queues;
    for (int i = 0; i < count; ++i) queues.push_back(&queues_[i]);
    return queues;
  }

  std::array<grpc::CompletionQueue, 3> queues_;
  std::deque<Step> steps_;
};

// Each handler ends when the others have begun, so with fewer threads none would end.
TEST_F(CompletionThreadsTest, EachQueueHasAThreadOfItsOwn) {
  constexpr int kQueues = 3;
  std::latch begun(kQueues);
  std::array<std::promise<std::thread::id>, kQueues> ended;
  const CompletionThreads threads(Queues(kQueues), /*assisted=*/false);
  for (int i = 0; i < kQueues; ++i) {
    Post(i, [&, i] {
      begun.arrive_and_wait();
      ended[i].set_value(std::this_thread::get_id());
    });
  }
  std::set<std::thread::id> ids;
  for (std::promise<std::thread::id>& end : ended) ids.insert(end.get_future().get());
  EXPECT_EQ(ids.size(), kQueues);
}

// The first handler of a queue ends when the second one has run.
TEST_F(CompletionThreadsTest, HandlersOfAQueueWhoseThreadIsBlockedRunWhicheverItIs) {
  constexpr int kQueues = 3;
  const CompletionThreads threads(Queues(kQueues), /*assisted=*/true);
  for (const int queue : {2, 0, 1, 0}) {
    std::promise<bool> helped;
    std::promise<void> second;
    Post(queue, [&] {
      helped.set_value(second.get_future().wait_for(kLong) == std::future_status::ready);
    });
    Post(queue, [&] { second.set_value(); });
    EXPECT_TRUE(helped.get_future().get()) << queue;
  }
}

TEST_F(CompletionThreadsTest, AThreadPollsItsQueueAloneAgainOnceItKeepsUp) {
  CompletionThreads threads(Queues(1), /*assisted=*/true);
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

TEST_F(CompletionThreadsTest, HandlersLeftInTheQueuesRunAtTheEnd) {
  std::atomic<int> taken{0};
  for (int i = 0; i < 100; ++i) Post(i % 3, [&] { ++taken; });
  { const CompletionThreads threads(Queues(3), /*assisted=*/true); }
  EXPECT_EQ(taken, 100);
}

}  // namespace
}  // namespace sap
