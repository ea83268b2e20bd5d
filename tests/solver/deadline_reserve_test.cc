#include "solver/run/deadline_reserve.h"

#include <gtest/gtest.h>

namespace sap {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(DeadlineReserveTest, IslandsToComeAreSharedByTheThreads) {
  const DeadlineReserve pace;
  const nanoseconds alone = pace.TimeForIslands(1000, 10, 1);
  EXPECT_GT(alone, nanoseconds(0));
  EXPECT_EQ(pace.TimeForIslands(1000, 10, 4), alone / 4);
  EXPECT_EQ(pace.TimeForIslands(0, 0, 1), nanoseconds(0));
}

TEST(DeadlineReserveTest, ManySmallIslandsTakeLongerThanOneWithTheirContacts) {
  const DeadlineReserve pace;
  EXPECT_GT(pace.TimeForIslands(1000, 500, 1), pace.TimeForIslands(1000, 1, 1));
}

TEST(DeadlineReserveTest, LargeTreesTakeTimeWhateverTheirContacts) {
  DeadlineReserve pace;
  const nanoseconds usual = pace.TimeToReportTrees(1e9);
  EXPECT_GT(usual, milliseconds(1));
  EXPECT_LT(pace.TimeToReportTrees(216), nanoseconds(10));
  pace.Gathered(1000, milliseconds(100));
  EXPECT_EQ(pace.TimeToReportTrees(1e9), 2 * usual);
}

TEST(DeadlineReserveTest, ExactFrictionTakesTwoMoreEvaluationsToReport) {
  DeadlineReserve convex, exact;
  exact.Start(/*coulomb=*/true);
  EXPECT_GT(exact.TimeToReport(1000), 2 * convex.TimeToReport(1000));
  EXPECT_EQ(exact.TimeForIslands(1000, 10, 1) - convex.TimeForIslands(1000, 10, 1),
            exact.TimeToReport(1000) - convex.TimeToReport(1000));
}

TEST(DeadlineReserveTest, SlowGatheringLengthensWhatIsToComeUpToTwofold) {
  DeadlineReserve pace;
  const nanoseconds usual = pace.TimeToReport(1000);
  pace.Gathered(1000, nanoseconds(1));  // faster than measured: nothing is promised for that
  EXPECT_EQ(pace.TimeToReport(1000), usual);
  pace.Gathered(1000, milliseconds(100));
  EXPECT_EQ(pace.TimeToReport(1000), 2 * usual);
  pace.Start();
  EXPECT_EQ(pace.TimeToReport(1000), usual);
}

}  // namespace
}  // namespace sap
