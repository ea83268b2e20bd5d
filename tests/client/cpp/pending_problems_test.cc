// Problems of a batch that are sent again after a loss.
#include "client/cpp/transport/pending_problems.h"

#include <gtest/gtest.h>

namespace sap::client::pending_problems {
namespace {

// Problems whose time steps are 0, 1, 2, ...
std::vector<ContactProblemView> Batch(int count) {
  std::vector<ContactProblemView> batch(count);
  for (int i = 0; i < count; ++i) batch[i].time_step = i;
  return batch;
}

TEST(PendingProblemsTest, TheWholeBatchIsSentFirst) {
  const PendingProblems pending(Batch(3));
  ASSERT_EQ(pending.problems().size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pending.problems()[i].time_step, i);
  EXPECT_FALSE(pending.empty());
}

TEST(PendingProblemsTest, AProblemHasOneOutcome) {
  PendingProblems pending(Batch(2));
  EXPECT_EQ(pending.Take(1), 1u);
  EXPECT_EQ(pending.Take(1), std::nullopt);
  EXPECT_EQ(pending.Take(2), std::nullopt);
  EXPECT_EQ(pending.Take(~0u), std::nullopt);
  EXPECT_FALSE(pending.empty());
  EXPECT_EQ(pending.Take(0), 0u);
  EXPECT_TRUE(pending.empty());
}

TEST(PendingProblemsTest, ThoseWithoutAnOutcomeAreSentAgain) {
  PendingProblems pending(Batch(6));
  for (const uint32_t index : {0u, 3u, 5u}) EXPECT_EQ(pending.Take(index), index);
  pending.Narrow();
  ASSERT_EQ(pending.problems().size(), 3u);
  for (const uint32_t index : {2u, 0u}) {
    const double problem = pending.problems()[index].time_step;
    EXPECT_EQ(pending.Take(index), problem);
    EXPECT_EQ(pending.Take(index), std::nullopt);
  }
  EXPECT_EQ(pending.Take(3), std::nullopt);
  pending.Narrow();
  ASSERT_EQ(pending.problems().size(), 1u);
  EXPECT_EQ(pending.problems()[0].time_step, 2);
  EXPECT_EQ(pending.Take(0), 2u);
  EXPECT_TRUE(pending.empty());
}

}  // namespace
}  // namespace sap::client::pending_problems
