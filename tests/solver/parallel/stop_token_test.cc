#include "solver/parallel/stop_token.h"

#include <gtest/gtest.h>

namespace sap {
namespace {

using std::chrono::hours;
using Clock = StopToken::Clock;

TEST(StopTokenTest, AnEarlierDeadlineStopsWhenItHasPassed) {
  const StopToken later(nullptr, Clock::now() + hours(1));
  EXPECT_EQ(later.Reason(), StopReason::kNone);
  EXPECT_EQ(later.EarlierBy(hours(2)).Reason(), StopReason::kDeadline);
  EXPECT_EQ(later.Expired().Reason(), StopReason::kDeadline);
}

TEST(StopTokenTest, NoDeadlineIsNoneAlsoWhenEarlier) {
  EXPECT_EQ(StopToken().EarlierBy(hours(1)).Reason(), StopReason::kNone);
}

// The earliest time there is has no time before it.
TEST(StopTokenTest, AnExpiredTokenStaysExpiredHoweverMuchEarlier) {
  for (const Clock::duration earlier : {Clock::duration(0), Clock::duration(1),
                                        Clock::duration(hours(1)), Clock::duration::max()}) {
    EXPECT_EQ(StopToken().Expired().EarlierBy(earlier).Reason(), StopReason::kDeadline);
    const StopToken past(nullptr, Clock::time_point::min() + Clock::duration(5));
    EXPECT_EQ(past.EarlierBy(earlier).Reason(), StopReason::kDeadline);
  }
}

TEST(StopTokenTest, ACancellationIsSeenThroughBoth) {
  const std::atomic<bool> cancelled{true};
  const StopToken token(&cancelled, Clock::now() + hours(1));
  EXPECT_EQ(token.EarlierBy(hours(2)).Reason(), StopReason::kCancelled);
  EXPECT_EQ(token.Expired().Reason(), StopReason::kCancelled);
}

}  // namespace
}  // namespace sap
