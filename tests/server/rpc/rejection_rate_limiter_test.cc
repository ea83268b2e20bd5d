// Delays of rejections: none for the first hundred, then so that the rate is not exceeded.
#include "server/rpc/rejection_rate_limiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace sap::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = RejectionRateLimiter::Clock;

constexpr Clock::time_point kStart{seconds(1000)};

// Send times of rejections requested at these times, in order.
std::vector<Clock::time_point> Sent(RejectionRateLimiter* pace,
                                    const std::vector<Clock::time_point>& asked) {
  std::vector<Clock::time_point> sent;
  for (const Clock::time_point time : asked) sent.push_back(time + pace->Wait(time));
  std::ranges::sort(sent);
  return sent;
}

TEST(RejectionRateLimiterTest, AHundredAtOnceAreSentAtOnce) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.Wait(kStart), seconds(0));
  EXPECT_GT(pace.Wait(kStart), seconds(0));
}

TEST(RejectionRateLimiterTest, AFloodIsSentAtTheRate) {
  RejectionRateLimiter pace(2);
  // One second at 5000 per second.
  std::vector<Clock::time_point> asked;
  for (int i = 0; i < 5000; ++i) asked.push_back(kStart + i * microseconds(200));
  const auto sent = Sent(&pace, asked);
  // 600 per second for two solver threads, plus the burst of a hundred.
  for (const auto time : {seconds(1), seconds(2), seconds(5)}) {
    const auto by = std::ranges::upper_bound(sent, kStart + time) - sent.begin();
    EXPECT_NEAR(by, 100 + 600 * time.count(), 600 * 0.02 + 1) << time.count();
  }
  EXPECT_LE(sent.back(), kStart + milliseconds(8200));
}

TEST(RejectionRateLimiterTest, ThoseThatWaitAreSentTogether) {
  RejectionRateLimiter pace(1);
  std::vector<Clock::time_point> asked;
  for (int i = 0; i < 400; ++i) asked.push_back(kStart + i * microseconds(10));
  auto sent = Sent(&pace, asked);
  sent.erase(sent.begin(), sent.begin() + 110);
  const auto last = std::ranges::unique(sent).begin();
  // 290 in one second at 300 per second, every 20 ms.
  EXPECT_NEAR(last - sent.begin(), 290.0 / 6, 2);
}

TEST(RejectionRateLimiterTest, AfterAQuietTimeAHundredAreSentAtOnceAgain) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 200; ++i) pace.Wait(kStart);
  const Clock::time_point later = kStart + seconds(60);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.Wait(later), seconds(0));
  EXPECT_GT(pace.Wait(later), seconds(0));
}

TEST(RejectionRateLimiterTest, WhatComesSlowerThanTheRateNeverWaits) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(pace.Wait(kStart + i * milliseconds(4)), seconds(0)) << i;
}

}  // namespace
}  // namespace sap::test
