#include "solver/parallel/sharing_balance.h"

#include <gtest/gtest.h>

namespace sap::test {
namespace {

using std::chrono::milliseconds;
using Time = SharingBalance::Clock::time_point;

constexpr Time kStart{std::chrono::hours(1)};

TEST(SharingBalanceTest, LoopsAreSharedWhileHelpersDoMoreThanIsWaited) {
  SharingBalance balance(Sharing::kWhereItGains);
  EXPECT_TRUE(balance.Shares());
  for (int i = 1; i <= 100; ++i) {
    balance.AddHelp(milliseconds(5));
    balance.AddWait(milliseconds(4), kStart + milliseconds(10 * i));
    EXPECT_TRUE(balance.Shares(kStart + milliseconds(10 * i)));
  }
}

// Asks every half of a millisecond, as the loops of a solve do; how often until loops are shared.
int QuestionsUntilShared(SharingBalance* balance, Time now) {
  for (int questions = 0;; ++questions) {
    if (balance->Shares(now += std::chrono::microseconds(500))) return questions;
  }
}

TEST(SharingBalanceTest, ALossPausesSharingForTwentyTimesItsLength) {
  SharingBalance balance(Sharing::kWhereItGains);
  balance.AddHelp(milliseconds(1));
  balance.AddWait(milliseconds(4), kStart);
  EXPECT_EQ(QuestionsUntilShared(&balance, kStart), 119);
  balance.AddWait(milliseconds(2), kStart + milliseconds(70));
  EXPECT_EQ(QuestionsUntilShared(&balance, kStart + milliseconds(70)), 79);
}

TEST(SharingBalanceTest, TimeWithoutSolvesIsNoPause) {
  SharingBalance balance(Sharing::kWhereItGains);
  balance.AddWait(milliseconds(1), kStart);
  for (int minute = 1; minute < 20; ++minute) {
    EXPECT_FALSE(balance.Shares(kStart + std::chrono::minutes(minute)));
  }
  EXPECT_TRUE(balance.Shares(kStart + std::chrono::minutes(20)));
}

TEST(SharingBalanceTest, GainsOfThePastCoverTenMillisecondsAtMost) {
  SharingBalance balance(Sharing::kWhereItGains);
  for (int i = 0; i < 100; ++i) balance.AddHelp(milliseconds(50));
  balance.AddWait(milliseconds(10), kStart);
  EXPECT_TRUE(balance.Shares(kStart));
  balance.AddWait(milliseconds(1), kStart);
  EXPECT_FALSE(balance.Shares(kStart));
}

TEST(SharingBalanceTest, WhatIsAlwaysSharedNeverPauses) {
  SharingBalance balance(Sharing::kAlways);
  balance.AddWait(milliseconds(1000), kStart);
  EXPECT_TRUE(balance.Shares(kStart));
  EXPECT_TRUE(balance.Shares());
}

}  // namespace
}  // namespace sap::test
