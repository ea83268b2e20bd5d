// What of a batch is sent again after a loss.
#include "client/cpp/transport/pending_problems.h"

#include <gtest/gtest.h>

namespace sap::client::pending_problems {
namespace {

// Problems whose time steps are 0, 1, 2, ...
v1::StreamBatchRequest Batch(int count) {
  v1::StreamBatchRequest batch;
  for (int i = 0; i < count; ++i) batch.add_problems()->set_time_step(i);
  batch.mutable_options()->set_max_iterations(7);
  return batch;
}

TEST(PendingProblemsTest, TheBatchItselfIsSentFirst) {
  const v1::StreamBatchRequest batch = Batch(3);
  const PendingProblems pending(batch);
  EXPECT_EQ(&pending.request(), &batch);
  EXPECT_FALSE(pending.empty());
}

TEST(PendingProblemsTest, AProblemHasOneOutcome) {
  const v1::StreamBatchRequest batch = Batch(2);
  PendingProblems pending(batch);
  EXPECT_EQ(pending.Take(1), 1u);
  EXPECT_EQ(pending.Take(1), std::nullopt);
  EXPECT_EQ(pending.Take(2), std::nullopt);
  EXPECT_EQ(pending.Take(~0u), std::nullopt);
  EXPECT_FALSE(pending.empty());
  EXPECT_EQ(pending.Take(0), 0u);
  EXPECT_TRUE(pending.empty());
}

TEST(PendingProblemsTest, ThoseWithoutAnOutcomeAreSentAgainWithTheOptions) {
  const v1::StreamBatchRequest batch = Batch(6);
  PendingProblems pending(batch);
  for (const uint32_t index : {0u, 3u, 5u}) EXPECT_EQ(pending.Take(index), index);
  pending.Narrow();
  ASSERT_EQ(pending.request().problems_size(), 3);
  EXPECT_EQ(pending.request().options().max_iterations(), 7);
  for (const uint32_t index : {2u, 0u}) {
    const double problem = pending.request().problems(static_cast<int>(index)).time_step();
    EXPECT_EQ(pending.Take(index), problem);
    EXPECT_EQ(pending.Take(index), std::nullopt);
  }
  EXPECT_EQ(pending.Take(3), std::nullopt);
  pending.Narrow();
  ASSERT_EQ(pending.request().problems_size(), 1);
  EXPECT_EQ(pending.request().problems(0).time_step(), 2);
  EXPECT_EQ(pending.Take(0), 2u);
  EXPECT_TRUE(pending.empty());
}

}  // namespace
}  // namespace sap::client::pending_problems
