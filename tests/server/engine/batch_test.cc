// Batches: each problem has its own outcome, with the bits of a unary call.
#include "server/engine/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/engine/engine.h"
#include "tests/server/engine/batches.h"

namespace sap::test {
namespace {

TEST(BatchTest, EveryProblemHasTheOutcomeOfAUnaryCall) {
  const auto request = MixedBatch<v1::SolveBatchRequest>();
  Engine reference(BatchConfig());
  const std::vector<AnswerBits> expected = OneByOne(&reference, request);
  EXPECT_THAT(expected[10].bytes, testing::HasSubstr("body_contacts."));
  for (const int threads : {1, 2, 4}) {
    Engine engine(BatchConfig(threads));
    v1::SolveBatchResponse response;
    ASSERT_TRUE(engine.SolveBatch(request, CallContext(), &response).has_value());
    EXPECT_EQ(AllBits(response), expected) << threads << " threads";
    EXPECT_EQ(response.outcomes(10).failure().code(), 3);
    EXPECT_THAT(response.outcomes(10).failure().field(), testing::HasSubstr("body_contacts."));
  }
}

TEST(BatchTest, AnEmptyBatchHasNoOutcomes) {
  Engine engine(BatchConfig());
  v1::SolveBatchResponse response;
  EXPECT_TRUE(engine.SolveBatch({}, CallContext(), &response).has_value());
  EXPECT_EQ(response.outcomes_size(), 0);
}

TEST(BatchTest, WhatIsWrongWithTheBatchFailsIt) {
  Engine engine(BatchConfig());
  v1::SolveBatchRequest request;
  for (int i = 0; i < 41; ++i) *request.add_problems() = test::MixedProblem();
  v1::SolveBatchResponse response;
  ServiceStatus status = engine.SolveBatch(request, CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ServiceCode::kInvalidArgument);
  EXPECT_EQ(status.error().message, "problems has 41 values; at most 40 are accepted in a batch");
  request.mutable_problems()->RemoveLast();
  request.mutable_options()->set_max_iterations(1'000'000);
  status = engine.SolveBatch(request, CallContext(), &response);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().field, "options.max_iterations");
}

// The budget is that of the whole batch: what has not begun when it is over returns its guess.
TEST(BatchTest, TheTimeBudgetCountsForTheWholeBatch) {
  Engine engine(BatchConfig());
  v1::SolveBatchRequest request;
  for (int i = 0; i < 4; ++i) *request.add_problems() = Block(16);
  request.mutable_options()->mutable_time_budget()->set_nanos(100'000'000);
  v1::SolveBatchResponse response;
  ASSERT_TRUE(engine.SolveBatch(request, CallContext(), &response).has_value());
  for (const v1::Outcome& outcome : response.outcomes()) {
    EXPECT_EQ(outcome.solution().islands().status(0), v1::ISLAND_STATUS_DEADLINE);
  }
}

}  // namespace
}  // namespace sap::test
