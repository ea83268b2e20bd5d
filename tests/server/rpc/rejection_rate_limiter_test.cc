// Delays of rejections: none for the first hundred, then so that the rate is not exceeded.
#include "server/rpc/rejection_rate_limiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
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
  for (const Clock::time_point time : asked) sent.push_back(time + pace->Wait("alice", time));
  std::ranges::sort(sent);
  return sent;
}

TEST(RejectionRateLimiterTest, AHundredAtOnceAreSentAtOnce) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.Wait("alice", kStart), seconds(0));
  EXPECT_GT(pace.Wait("alice", kStart), seconds(0));
}

TEST(RejectionRateLimiterTest, AFloodIsSentAtTheRate) {
  RejectionRateLimiter pace(2);
  // One second at 1200 per second.
  std::vector<Clock::time_point> asked;
  for (int i = 0; i < 1200; ++i) asked.push_back(kStart + i * microseconds(833));
  const auto sent = Sent(&pace, asked);
  // 600 per second for two solver threads, plus the burst of a hundred.
  for (const auto time : {milliseconds(500), milliseconds(1000), milliseconds(1500)}) {
    const auto by = std::ranges::upper_bound(sent, kStart + time) - sent.begin();
    EXPECT_NEAR(by, 100 + 0.6 * time.count(), 600 * 0.02 + 1) << time.count();
  }
  EXPECT_LE(sent.back(), kStart + milliseconds(1900));
}

// Who has no token waits for a second at most, however many do: proxies and drains hold them.
TEST(RejectionRateLimiterTest, StrangersWaitForASecondAtMost) {
  RejectionRateLimiter pace(1);
  Clock::duration longest{}, longest_of_a_client{};
  for (int i = 0; i < 10'000; ++i) {
    longest = std::max(longest, pace.Wait("", kStart));
    longest_of_a_client = std::max(longest_of_a_client, pace.Wait("alice", kStart));
  }
  EXPECT_LE(longest, seconds(1));
  EXPECT_GE(longest, milliseconds(900));
  EXPECT_GE(longest_of_a_client, seconds(9));
}

TEST(RejectionRateLimiterTest, ThoseThatWaitAreSentTogether) {
  RejectionRateLimiter pace(1);
  std::vector<Clock::time_point> asked;
  for (int i = 0; i < 390; ++i) asked.push_back(kStart + i * microseconds(10));
  auto sent = Sent(&pace, asked);
  sent.erase(sent.begin(), sent.begin() + 110);
  const auto last = std::ranges::unique(sent).begin();
  // 280 in a second at 300 per second, every 20 ms.
  EXPECT_NEAR(last - sent.begin(), 280.0 / 6, 2);
}

TEST(RejectionRateLimiterTest, AfterAQuietTimeAHundredAreSentAtOnceAgain) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 200; ++i) pace.Wait("alice", kStart);
  const Clock::time_point later = kStart + seconds(60);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.Wait("alice", later), seconds(0));
  EXPECT_GT(pace.Wait("alice", later), seconds(0));
}

TEST(RejectionRateLimiterTest, WhatComesSlowerThanTheRateNeverWaits) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(pace.Wait("alice", kStart + i * milliseconds(4)), seconds(0)) << i;
}

// However many calls are rejected, each client learns of its rejection within ten seconds.
TEST(RejectionRateLimiterTest, NoRejectionWaitsLongerThanTenSeconds) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 100'000; ++i) EXPECT_LE(pace.Wait("alice", kStart), seconds(10));
  EXPECT_LE(pace.Wait("alice", kStart + seconds(10)), seconds(10));
  EXPECT_EQ(pace.Wait("alice", kStart + seconds(20)), seconds(0));
}

// Calls that wait for their rejection are no reason to send it sooner.
TEST(RejectionRateLimiterTest, ThousandsOutstandingAreSentAtTheRate) {
  RejectionRateLimiter pace(1);
  std::map<Clock::duration, int> sent;
  for (int i = 0; i < 2500; ++i) ++sent[pace.Wait("alice", kStart)];
  for (const auto& [wait, count] : sent) {
    if (wait == seconds(0)) continue;
    EXPECT_LE(count, 300 / 50) << wait / milliseconds(1) << " ms";
  }
}

TEST(RejectionRateLimiterTest, RejectionsOfOneClientDelayNoOther) {
  RejectionRateLimiter pace(1);
  for (int i = 0; i < 10'000; ++i) pace.Wait("alice", kStart);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pace.Wait("bob", kStart), seconds(0));
  // Many clients do not make it forget one that still owes time.
  for (int i = 0; i < 1000; ++i) pace.Wait("client " + std::to_string(i), kStart);
  EXPECT_GT(pace.Wait("alice", kStart), seconds(0));
}

struct Ended final : CompletionTag {
  void Complete(bool) override {}
};

// As sessions and batches ask: by account, and callers without one together.
TEST(RejectionRateLimiterTest, AnAccountInDebtWaitsAndOthersDoNot) {
  RejectionRateLimiter pace(1);
  const ClientAccount alice("alice"), bob("bob");
  // A debt of a second.
  for (int i = 0; i < 400; ++i) pace.Wait("alice", Clock::now());
  grpc::CompletionQueue queue;
  Ended tag;
  grpc::Alarm alarm, none;
  EXPECT_FALSE(pace.Delay(&bob, &queue, &tag, &none));
  EXPECT_FALSE(pace.Delay(nullptr, &queue, &tag, &none));
  if (pace.Delay(&alice, &queue, &tag, &alarm)) {
    void* completed = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&completed, &ok));
    EXPECT_EQ(completed, &tag);
  }
}

}  // namespace
}  // namespace sap::test
