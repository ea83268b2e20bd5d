#include "server/engine/detached_sessions.h"

#include <gtest/gtest.h>

#include <set>

#include "server/engine/engine.h"

namespace sap {
namespace {

class Claimant final : public SessionClaimant {
 public:
  void Resume(std::unique_ptr<LostSession> lost) override {
    ++calls;
    got = std::move(lost);
  }
  int calls{0};
  std::unique_ptr<LostSession> got;
};

class Holder final : public SessionHolder {
 public:
  void GiveUp() override { asked = true; }
  bool asked{false};
};

class LostSessionsTest : public testing::Test {
 protected:
  std::unique_ptr<LostSession> Lost(const std::string& client) {
    auto lost = std::make_unique<LostSession>();
    lost->session = std::move(*engine_.NewSession());
    lost->client = client;
    return lost;
  }

  Engine engine_{ServerConfig()};
  LostSessions sessions_{1e6};
  Holder holder_;
  Claimant claimant_;
};

TEST_F(LostSessionsTest, TokensAreNeverTheSame) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(LostSessions::NewToken());
  EXPECT_EQ(tokens.size(), 1000u);
  EXPECT_EQ(tokens.begin()->size(), 16u);
}

TEST_F(LostSessionsTest, ALostSessionGoesToItsClientOnce) {
  sessions_.Keep("token", Lost("a"));
  EXPECT_EQ(sessions_.size(), 1u);
  sessions_.Claim("token", "a", &claimant_);
  EXPECT_NE(claimant_.got, nullptr);
  EXPECT_EQ(sessions_.size(), 0u);
  Claimant second;
  sessions_.Claim("token", "a", &second);
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(second.got, nullptr);
}

TEST_F(LostSessionsTest, NobodyElseGetsIt) {
  sessions_.Keep("token", Lost("a"));
  sessions_.Claim("token", "b", &claimant_);
  EXPECT_EQ(claimant_.calls, 1);
  EXPECT_EQ(claimant_.got, nullptr);
  sessions_.Claim("another", "a", &claimant_);
  EXPECT_EQ(claimant_.got, nullptr);
  EXPECT_EQ(sessions_.size(), 1u);
}

TEST_F(LostSessionsTest, AStreamThatStillHasItIsAskedForItFirst) {
  sessions_.Hold("token", &holder_);
  sessions_.Claim("token", "a", &claimant_);
  EXPECT_TRUE(holder_.asked);
  EXPECT_EQ(claimant_.calls, 0);
  sessions_.Keep("token", Lost("a"));
  EXPECT_EQ(claimant_.calls, 1);
  EXPECT_NE(claimant_.got, nullptr);
  EXPECT_EQ(sessions_.size(), 0u);
}

// It ended in good order just then.
TEST_F(LostSessionsTest, WhoWaitsForASessionThatEndsIsToldSo) {
  sessions_.Hold("token", &holder_);
  sessions_.Claim("token", "a", &claimant_);
  sessions_.Forget("token");
  EXPECT_EQ(claimant_.calls, 1);
  EXPECT_EQ(claimant_.got, nullptr);
}

TEST_F(LostSessionsTest, NobodyElseGetsItFromAStreamEither) {
  sessions_.Hold("token", &holder_);
  sessions_.Claim("token", "b", &claimant_);
  sessions_.Keep("token", Lost("a"));
  EXPECT_EQ(claimant_.calls, 1);
  EXPECT_EQ(claimant_.got, nullptr);
}

TEST_F(LostSessionsTest, WhatNobodyResumesIsDropped) {
  LostSessions brief(0);
  brief.Keep("token", Lost("a"));
  EXPECT_EQ(engine_.num_sessions(), 1);
  EXPECT_EQ(brief.Sweep(), 1);
  EXPECT_EQ(engine_.num_sessions(), 0);
  sessions_.Keep("one", Lost("a"));
  sessions_.Keep("two", Lost("a"));
  EXPECT_EQ(sessions_.Sweep(), 0);
  EXPECT_TRUE(sessions_.DropOldest());
  EXPECT_EQ(engine_.num_sessions(), 1);
  sessions_.Claim("one", "a", &claimant_);
  EXPECT_EQ(claimant_.got, nullptr);
  sessions_.DropAll();
  EXPECT_EQ(engine_.num_sessions(), 0);
  EXPECT_FALSE(sessions_.DropOldest());
}

}  // namespace
}  // namespace sap
