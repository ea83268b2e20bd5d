#include "server/engine/detached_sessions.h"

#include <gtest/gtest.h>

#include <set>

#include "server/engine/engine.h"

namespace sap {
namespace {

class Claimant final : public SessionClaimant {
 public:
  void Resume(std::unique_ptr<DetachedSession> lost) override {
    ++calls;
    got = std::move(lost);
  }
  int calls{0};
  std::unique_ptr<DetachedSession> got;
};

class Holder final : public SessionHolder {
 public:
  void GiveUp() override { asked = true; }
  bool asked{false};
};

class DetachedSessionsTest : public testing::Test {
 protected:
  std::unique_ptr<DetachedSession> Lost(const std::string& client) {
    auto lost = std::make_unique<DetachedSession>();
    lost->session = std::move(*engine_.NewSession());
    lost->client = client;
    return lost;
  }

  Engine engine_{ServerConfig()};
  DetachedSessions sessions_{1e6};
  Holder holder_;
  Claimant claimant_;
};

TEST_F(DetachedSessionsTest, TokensAreNeverTheSame) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(DetachedSessions::NewToken());
  EXPECT_EQ(tokens.size(), 1000u);
  EXPECT_EQ(tokens.begin()->size(), 16u);
}

TEST_F(DetachedSessionsTest, ALostSessionGoesToItsClientOnce) {
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

TEST_F(DetachedSessionsTest, NobodyElseGetsIt) {
  sessions_.Keep("token", Lost("a"));
  sessions_.Claim("token", "b", &claimant_);
  EXPECT_EQ(claimant_.calls, 1);
  EXPECT_EQ(claimant_.got, nullptr);
  sessions_.Claim("another", "a", &claimant_);
  EXPECT_EQ(claimant_.got, nullptr);
  EXPECT_EQ(sessions_.size(), 1u);
}

TEST_F(DetachedSessionsTest, AStreamThatStillHasItIsAskedForItFirst) {
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
TEST_F(DetachedSessionsTest, WhoWaitsForASessionThatEndsIsToldSo) {
  sessions_.Hold("token", &holder_);
  sessions_.Claim("token", "a", &claimant_);
  sessions_.Forget("token");
  EXPECT_EQ(claimant_.calls, 1);
  EXPECT_EQ(claimant_.got, nullptr);
}

// A stream gives its session up before the name of the claimant is looked at, so that the session
// is lost to its own client as well.
TEST_F(DetachedSessionsTest, NobodyElseGetsItFromAStreamWhichLosesIt) {
  sessions_.Hold("token", &holder_);
  sessions_.Claim("token", "b", &claimant_);
  sessions_.Keep("token", Lost("a"));
  EXPECT_EQ(claimant_.calls, 1);
  EXPECT_EQ(claimant_.got, nullptr);
  EXPECT_EQ(engine_.num_sessions(), 0);
  Claimant owner;
  sessions_.Claim("token", "a", &owner);
  EXPECT_EQ(owner.got, nullptr);
}

TEST_F(DetachedSessionsTest, WhatNobodyResumesIsDropped) {
  DetachedSessions brief(0);
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
