#include "server/scheduling/inline_shares.h"

#include <gtest/gtest.h>

namespace sap::test::inline_shares {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class InlineSharesTest : public testing::Test {
 protected:
  void Add(ClientAccount* account, std::chrono::nanoseconds time) {
    shares_.Add(account, time, now_);
  }
  bool Exceeded(const ClientAccount& account, int queued_flows = 0) {
    return shares_.Exceeded(account, queued_flows, now_);
  }

  InlineShares::Clock::time_point now_{std::chrono::hours(1)};  // the beginning of a period
  ClientAccount a_{"a"}, b_{"b"}, c_{"c"};
  InlineShares shares_;
};

TEST_F(InlineSharesTest, OneClientMayUseAllOfTheTime) {
  Add(&a_, milliseconds(40));
  EXPECT_FALSE(Exceeded(a_));
}

TEST_F(InlineSharesTest, ManyCallsOfOneClientLeaveRoomForThoseOfAnother) {
  Add(&b_, microseconds(50));
  Add(&a_, milliseconds(4));
  EXPECT_FALSE(Exceeded(a_));  // nobody is refused half of a thread
  Add(&a_, milliseconds(2));
  EXPECT_TRUE(Exceeded(a_));
  EXPECT_FALSE(Exceeded(b_));
}

TEST_F(InlineSharesTest, EqualClientsStayWithinTheirShares) {
  for (ClientAccount* account : {&a_, &b_, &c_}) Add(account, milliseconds(7));
  for (const ClientAccount* account : {&a_, &b_, &c_}) EXPECT_FALSE(Exceeded(*account));
}

TEST_F(InlineSharesTest, WhoWaitsInTheQueueHasAShareToo) {
  Add(&a_, milliseconds(6));
  EXPECT_FALSE(Exceeded(a_));
  EXPECT_TRUE(Exceeded(a_, 1));
}

TEST_F(InlineSharesTest, EveryPeriodBeginsAnew) {
  Add(&b_, microseconds(50));
  Add(&a_, milliseconds(6));
  now_ += milliseconds(10);
  EXPECT_FALSE(Exceeded(a_));
  Add(&a_, milliseconds(6));
  EXPECT_FALSE(Exceeded(a_));  // the other client is not active any more
  Add(&b_, microseconds(50));
  EXPECT_TRUE(Exceeded(a_));
}

}  // namespace
}  // namespace sap::test::inline_shares
