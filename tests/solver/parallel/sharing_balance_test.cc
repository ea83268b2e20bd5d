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

// The first time after `now`, in steps of half a millisecond, at which loops are shared.
milliseconds UntilShared(SharingBalance* balance, Time now) {
  for (Time time = now;; time += std::chrono::microseconds(500)) {
    if (balance->Shares(time)) return std::chrono::duration_cast<milliseconds>(time - now);
  }
}

TEST(SharingBalanceTest, ALossPausesSharingForTwentyTimesItsLength) {
  SharingBalance balance(Sharing::kWhereItGains);
  balance.AddHelp(milliseconds(1));
  balance.AddWait(milliseconds(3), kStart);
  EXPECT_EQ(UntilShared(&balance, kStart), milliseconds(40));
  balance.AddWait(milliseconds(1), kStart + milliseconds(70));
  EXPECT_EQ(UntilShared(&balance, kStart + milliseconds(70)), milliseconds(20));
}

TEST(SharingBalanceTest, NoLossPausesSharingForMoreThanFiftyMilliseconds) {
  SharingBalance balance(Sharing::kWhereItGains);
  for (const int wait : {42, 44, 79, 100'000}) {
    balance.AddWait(milliseconds(wait), kStart);
    EXPECT_EQ(UntilShared(&balance, kStart), milliseconds(50)) << wait;
  }
}

// A scene of 30 000 bodies in heaps: one loop per solve of 110 ms, of which helpers do half. The
// helper of the first solve comes late, and so does that of the tenth.
TEST(SharingBalanceTest, SolvesOfOneLongLoopLoseOneSolveToALateHelper) {
  SharingBalance balance(Sharing::kWhereItGains);
  Time now = kStart;
  int alone = 0;
  for (int solve = 0; solve < 20; ++solve) {
    if (balance.Shares(now)) {
      now += milliseconds(55);
      if (solve == 0 || solve == 10) {
        now += milliseconds(79);
        balance.AddWait(milliseconds(79), now);
      }
      balance.AddHelp(milliseconds(55));
    } else {
      now += milliseconds(110);
      ++alone;
    }
  }
  EXPECT_EQ(alone, 2);
}

// Loops of 100 us whose helper is displaced for a time slice every fourth time: a twentieth of the
// time is waited, not half.
TEST(SharingBalanceTest, DisplacedHelpersCostATwentiethOfTheTime) {
  SharingBalance balance(Sharing::kWhereItGains);
  Time now = kStart;
  std::chrono::duration<double> waited{0};
  for (int loop = 0; loop < 20'000; ++loop) {
    if (!balance.Shares(now)) {
      now += std::chrono::microseconds(100);
      continue;
    }
    now += std::chrono::microseconds(50);
    balance.AddHelp(std::chrono::microseconds(50));
    if (loop % 4 != 0) continue;
    now += std::chrono::microseconds(2500);
    waited += std::chrono::microseconds(2500);
    balance.AddWait(std::chrono::microseconds(2500), now);
  }
  EXPECT_LE(waited / (now - kStart), 0.055);
}

// The workspace of a first solve is one index, and the opener waits for it.
TEST(SharingBalanceTest, AWaitForAHelperThatWorksAllTheTimeIsNoLoss) {
  SharingBalance balance(Sharing::kWhereItGains);
  balance.AddHelp(milliseconds(79));
  balance.AddWait(milliseconds(79), kStart);
  EXPECT_TRUE(balance.Shares(kStart));
}

TEST(SharingBalanceTest, GainsOfEarlierLoopsCoverTenMillisecondsAtMost) {
  SharingBalance balance(Sharing::kWhereItGains);
  for (int i = 0; i < 100; ++i) balance.AddHelp(milliseconds(50));
  balance.AddHelp(std::chrono::microseconds(50));
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
