// Batches: each problem has its own outcome, with the bits of a unary call.
#include "server/service/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <string>

#include "proto/codec/problem_decoder.h"
#include "tests/server/service/batches.h"
#include "tests/support/blocking_handler.h"

namespace sap::test {
namespace {

TEST(BatchTest, EveryProblemHasTheOutcomeOfAUnaryCall) {
  const auto request = MixedBatch<v1::SolveBatchRequest>();
  BlockingHandler reference(BatchConfig());
  const std::vector<AnswerBits> expected = OneByOne(&reference, request);
  EXPECT_THAT(expected[10].bytes, testing::HasSubstr("body_contacts."));
  for (const int threads : {1, 2, 4}) {
    BlockingHandler handler(BatchConfig(threads));
    v1::SolveBatchResponse response;
    ASSERT_TRUE(handler.SolveBatch(request, CallContext(), &response).has_value());
    EXPECT_EQ(AllBits(response), expected) << threads << " threads";
    EXPECT_EQ(response.outcomes(10).failure().code(), 3);
    EXPECT_THAT(response.outcomes(10).failure().field(), testing::HasSubstr("body_contacts."));
  }
}

TEST(BatchTest, AnEmptyBatchHasNoOutcomes) {
  BlockingHandler handler(BatchConfig());
  v1::SolveBatchResponse response;
  EXPECT_TRUE(handler.SolveBatch({}, CallContext(), &response).has_value());
  EXPECT_EQ(response.outcomes_size(), 0);
}

TEST(BatchTest, WhatIsWrongWithTheBatchFailsIt) {
  BlockingHandler handler(BatchConfig());
  v1::SolveBatchRequest request;
  for (int i = 0; i < 41; ++i) *request.add_problems() = test::MixedProblem();
  v1::SolveBatchResponse response;
  ServiceStatus status = handler.SolveBatch(request, CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kInvalidArgument);
  EXPECT_EQ(status.error().message, "problems has 41 values; at most 40 are accepted in a batch");
  request.mutable_problems()->RemoveLast();
  request.mutable_options()->set_max_iterations(1'000'000);
  status = handler.SolveBatch(request, CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().field, "options.max_iterations");
}

std::atomic<int64_t> g_now_ns{0};

std::chrono::steady_clock::time_point Now() {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(g_now_ns));
}

// Every problem of either client takes a millisecond, on the only thread.
TEST(BatchTest, AFullBatchTakesNoMoreThanTheShareOfItsClient) {
  TaskArena arena(1);
  ClientAccount batches("batches"), other("other");
  std::string order;
  std::promise<void> at_gate, gate, done;
  FairQueue queue(&arena, 1e6, 0, &Now);
  Batch::Problems problems;
  const double work_s = PredictedWork(Block(2));
  for (int i = 0; i < 40; ++i) problems.push_back({.bytes = 1, .solve_bytes = 0, .work_s = work_s});
  Batch::Start(
      problems, {&queue, 1, &batches, Priority::kNormal},
      [&](int, Dispatch) {
        if (order.empty()) {
          at_gate.set_value();
          gate.get_future().wait();
        }
        order += 'b';
        g_now_ns += 1'000'000;
        return 1.0;
      },
      [&] { done.set_value(); });
  at_gate.get_future().wait();
  std::deque<QueuedTask> tasks(10);
  for (QueuedTask& task : tasks) {
    task.run = [](void* order, Dispatch) {
      *static_cast<std::string*>(order) += 'o';
      g_now_ns += 1'000'000;
    };
    task.context = &order;
    task.account = &other;
    task.work_s = work_s;
    ASSERT_TRUE(queue.Push(&task).has_value());
  }
  gate.set_value();
  done.get_future().wait();
  EXPECT_EQ(std::count(order.begin(), order.end(), 'b'), 40);
  EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.begin() + 20, 'o')), 10, 1);
}

// Stacks of 24 contacts each; in problem i stack i is pushed in a way of its own.
template <typename Request>
Request Futures(int problems, int stacks) {
  Request request;
  for (int i = 0; i < problems; ++i) {
    client::Problem problem = Stacks(stacks, 6);
    problem.bodies.free_motion_velocity[36 * i] += 1e-3 * (i + 1);
    client::ToMessage(problem, request.add_problems());
  }
  return request;
}

TEST(BatchTest, IslandsThatProblemsShareAreSolvedOnceAndCounted) {
  const auto request = Futures<v1::SolveBatchRequest>(6, 8);
  BlockingHandler reference(BatchConfig());
  const std::vector<AnswerBits> expected = OneByOne(&reference, request);
  Metrics metrics;
  BlockingHandler handler(BatchConfig(1), nullptr, &metrics);
  v1::SolveBatchResponse response;
  ASSERT_TRUE(handler.SolveBatch(request, CallContext(), &response).has_value());
  EXPECT_EQ(AllBits(response), expected);
  EXPECT_EQ(metrics.islands_shared.Sum(), 5 * 7 - 1U);  // one thread: problem 1 solves stack 0
  EXPECT_EQ(metrics.islands_solved.Sum(), 6 * 8 - metrics.islands_shared.Sum());
  EXPECT_EQ(handler.admission().bytes(), 0);
}

TEST(BatchTest, ThreadsThatMeetTheSameIslandsGiveTheSameBits) {
  const auto request = Futures<v1::StreamBatchRequest>(20, 24);
  BlockingHandler reference(BatchConfig());
  const std::vector<AnswerBits> expected =
      OneByOne(&reference, Futures<v1::SolveBatchRequest>(20, 24));
  Metrics metrics;
  BlockingHandler handler(BatchConfig(4), nullptr, &metrics);
  std::vector<AnswerBits> outcomes(20);
  ASSERT_TRUE(
      handler
          .StreamBatch(request, CallContext(),
                       [&](int i, const v1::Outcome& outcome) { outcomes[i] = BitsOf(outcome); })
          .has_value());
  EXPECT_EQ(outcomes, expected);
  EXPECT_GT(metrics.islands_shared.Sum(), 0U);
}

TEST(BatchTest, CallsOfOneProblemShareNothing) {
  Metrics metrics;
  BlockingHandler handler(BatchConfig(1), nullptr, &metrics);
  v1::SolveBatchResponse response;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(handler.SolveBatch(Futures<v1::SolveBatchRequest>(1, 4), CallContext(), &response)
                    .has_value());
  }
  EXPECT_EQ(metrics.islands_shared.Sum(), 0U);
  EXPECT_EQ(metrics.islands_solved.Sum(), 8U);
}

// A quarter of each problem has to be solved.
TEST(BatchTest, WorkThatIsSharedIsReleasedWhileTheBatchGoesOn) {
  TaskArena arena(1);
  ClientAccount account("futures");
  FairQueue queue(&arena, 1e6, 0, &Now);
  double released_s = 0;
  std::promise<void> done;
  Batch::Start(
      Batch::Problems(8, {.bytes = 1, .solve_bytes = 0, .work_s = 2}),
      {&queue, 1, &account, Priority::kNormal, [&](double work_s) { released_s += work_s; }},
      [](int, Dispatch) { return 0.25; }, [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(released_s, 8 * 1.5);
}

// The budget is that of the whole batch: what has not begun when it is over returns its guess.
TEST(BatchTest, TheTimeBudgetCountsForTheWholeBatch) {
  BlockingHandler handler(BatchConfig());
  v1::SolveBatchRequest request;
  for (int i = 0; i < 4; ++i) *request.add_problems() = Block(16);
  request.mutable_options()->mutable_time_budget()->set_nanos(100'000'000);
  v1::SolveBatchResponse response;
  ASSERT_TRUE(handler.SolveBatch(request, CallContext(), &response).has_value());
  for (const v1::Outcome& outcome : response.outcomes()) {
    EXPECT_EQ(outcome.solution().islands().status(0), v1::ISLAND_STATUS_DEADLINE);
  }
}

}  // namespace
}  // namespace sap::test
