#include "solver/engine/time_limit.h"

#include <gtest/gtest.h>

namespace sap::test::time_limit {
namespace {

using Clock = CallLimits::Clock;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;

CallLimits CallWithin(nanoseconds time) {
  CallLimits call;
  call.deadline = call.arrival + time;
  return call;
}

// Time that a solve leaves before the deadline.
nanoseconds ReserveOf(nanoseconds time, nanoseconds answer_time = nanoseconds(0)) {
  const CallLimits call = CallWithin(time);
  return call.deadline - SolveDeadline(call, {.answer_time = answer_time});
}

TEST(TimeLimitTest, AShortDeadlineKeepsATwentiethForTheAnswer) {
  EXPECT_EQ(ReserveOf(milliseconds(600)), milliseconds(30));
  EXPECT_EQ(ReserveOf(milliseconds(600), milliseconds(2500)), milliseconds(30));
}

TEST(TimeLimitTest, ALongDeadlineKeepsNoMoreThanTheAnswerTakes) {
  EXPECT_EQ(ReserveOf(minutes(10)), milliseconds(50));
  EXPECT_EQ(ReserveOf(minutes(10), milliseconds(2500)), milliseconds(2550));
}

TEST(TimeLimitTest, TheTimeBudgetCountsFromTheArrivalUnlessTheDeadlineIsSooner) {
  const CallLimits call = CallWithin(minutes(10));
  EXPECT_EQ(SolveDeadline(call, {.time_budget = minutes(1)}), call.arrival + minutes(1));
  EXPECT_LT(SolveDeadline(call, {.time_budget = minutes(20)}), call.deadline);
}

TEST(TimeLimitTest, TheEarliestOfAllLimitsCounts) {
  const CallLimits call = CallWithin(minutes(10));
  const Clock::time_point latest = call.arrival + minutes(1);
  EXPECT_EQ(SolveDeadline(call, {.latest = latest}), latest);
  EXPECT_EQ(SolveDeadline(call, {.time_budget = minutes(2), .latest = latest}), latest);
  EXPECT_EQ(SolveDeadline(call, {.time_budget = milliseconds(1), .latest = latest}),
            call.arrival + milliseconds(1));
}

TEST(TimeLimitTest, WithoutALimitNothingStopsASolve) {
  EXPECT_EQ(SolveDeadline(CallLimits(), {}), Clock::time_point::max());
  EXPECT_FALSE(StopTokenFor(CallLimits(), {}).HasDeadline());
}

}  // namespace
}  // namespace sap::test::time_limit
