// Calls outlive connections and servers, within the time of the options and their own deadline.
#include "client/cpp/transport/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <set>

#include "tests/support/await.h"
#include "tests/support/faulty_link.h"
#include "tests/support/scenes.h"
#include "tests/support/scripted_server.h"
#include "tests/support/solution_bits.h"
#include "tests/support/transports.h"

namespace sap::test::retry {
namespace {

using client::Client;
using client::ErrorCode;
using client::Problem;
using client::RetryPauses;
using client::SolveOptions;
using std::chrono::milliseconds;

// Each within a half of its length, so that clients that lost a server together spread.
TEST(RetryPausesTest, TheFirstAttemptIsMadeAtOnceAndThePausesDoubleUpToASecond) {
  std::set<milliseconds> longest;
  for (int client = 0; client < 100; ++client) {
    RetryPauses pauses;
    for (const int pause : {0, 50, 100, 200, 400, 800, 1000, 1000}) {
      const milliseconds drawn = pauses.Next();
      EXPECT_GE(drawn, milliseconds(pause) / 2);
      EXPECT_LE(drawn, milliseconds(pause) * 3 / 2);
      if (pause == 1000) longest.insert(drawn);
    }
    pauses.Restart();
    EXPECT_EQ(pauses.Next(), milliseconds(0));
    EXPECT_LE(pauses.Next(), milliseconds(75));
  }
  EXPECT_GT(longest.size(), 50u);
}

Problem Scene() { return *client::FromMessage(MixedProblem()); }

// A server behind a link that swallows what is sent, and another one.
class CallRetryTest : public testing::Test {
 protected:
  CallRetryTest() : expected_(Bits(*Client::Connect("embedded:")->Solve(Scene()))) {}

  static Client Connect(const FaultyLink& link, client::ConnectOptions options = {}) {
    options.connect_timeout = kLong;
    auto client = Client::Connect(link.address(), options);
    EXPECT_TRUE(client.has_value()) << client.error().message;
    return std::move(*client);
  }

  // Returns the outcome of a call whose connection ends while it is under way, and new connections
  // lead to the other server.
  template <typename Call>
  auto Interrupted(Call call) {
    link_.Stall(true);
    auto result = std::async(std::launch::async, call);
    EXPECT_EQ(result.wait_for(milliseconds(50)), std::future_status::timeout);
    link_.Redirect(servers_[1].grpc()->address());
    link_.Cut();
    link_.Stall(false);
    return result.get();
  }

  Server servers_[2] = {Server("tcp:", ConfigWithThreads(2)), Server("tcp:", ConfigWithThreads(2))};
  FaultyLink link_{servers_[0].grpc()->address()};
  const AnswerBits expected_;
};

TEST_F(CallRetryTest, ASolveWhoseServerIsLostIsAnsweredByAnother) {
  Client client = Connect(link_);
  ASSERT_TRUE(client.Solve(Scene()).has_value());
  const auto solution = Interrupted([&] { return client.Solve(Scene()); });
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_EQ(Bits(*solution), expected_);
  EXPECT_GE(link_.connections(), 2);
}

TEST_F(CallRetryTest, ABatchWhoseServerIsLostIsAnsweredByAnother) {
  Client client = Connect(link_);
  const std::vector<Problem> problems(3, Scene());
  const auto outcomes = Interrupted([&] { return client.SolveBatch(problems); });
  ASSERT_EQ(outcomes.size(), 3u);
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(Bits(*outcome), expected_);
  }
}

TEST_F(CallRetryTest, ACallOnAConnectionThatWasLostBeforeIsAnswered) {
  Client client = Connect(link_);
  for (int i = 0; i < 5; ++i) {
    const auto solution = client.Solve(Scene());
    ASSERT_TRUE(solution.has_value()) << solution.error().message;
    EXPECT_EQ(Bits(*solution), expected_);
    EXPECT_TRUE(client.Info().has_value());
    link_.Redirect(servers_[(i + 1) % 2].grpc()->address());
    link_.Cut();
  }
}

TEST_F(CallRetryTest, AServerThatDoesNotComeBackIsUnavailable) {
  auto server = std::make_unique<Server>("tcp:", ConfigWithThreads(2));
  Client client = server->Connect({.reconnect_within = milliseconds(300)});
  ASSERT_TRUE(client.Solve(Scene()).has_value());
  server = nullptr;
  const auto solution = client.Solve(Scene());
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kUnavailable) << solution.error().message;
  EXPECT_EQ(solution.error().server, "");
}

// A call that the server never gets in whole, as if packets vanished.
TEST_F(CallRetryTest, ADeadlineEndsTheAttemptUnderWay) {
  Client client = Connect(link_, {.reconnect_within = kLong});
  ASSERT_TRUE(client.Solve(Scene()).has_value());
  link_.Stall(true);
  SolveOptions options;
  options.deadline = milliseconds(300);
  const auto solution = client.Solve(Scene(), options);
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kDeadlineExceeded);
}

class ScriptedRetryTest : public testing::Test {
 protected:
  Client Connect(milliseconds reconnect_within = kLong) const {
    auto client = Client::Connect(server_.address(),
                                  {.connect_timeout = kLong, .reconnect_within = reconnect_within});
    EXPECT_TRUE(client.has_value()) << client.error().message;
    return std::move(*client);
  }

  ScriptedServer server_{"0.2.0 x86-64-v3 0123456789abcdef"};
};

// Calls that fail at once, as at servers that drain. The last error is returned, not that of the
// time that is over.
TEST_F(ScriptedRetryTest, AttemptsEndWithTheTimeToReconnectAndWithTheDeadline) {
  for (int i = 0; i < 1000; ++i) {
    server_.EndNext({.code = grpc::StatusCode::UNAVAILABLE, .with_identity = true});
  }
  const std::pair<milliseconds, std::optional<milliseconds>> cases[] = {
      {milliseconds(400), std::nullopt}, {milliseconds(kLong), milliseconds(400)}};
  for (const auto& [within, deadline] : cases) {
    const int before = server_.calls();
    SolveOptions options;
    options.deadline = deadline;
    const auto status = Connect(within).Solve(Problem(), options);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(status.error().message, "as the test says");
    EXPECT_EQ(status.error().lost_attempts, 0);
    // At 0, 0, 50, 150, 350 ms, each pause drawn from a half to one and a half; on a busy machine
    // fewer.
    EXPECT_GE(server_.calls() - before, 2);
    EXPECT_LE(server_.calls() - before, 6);
  }
}

// It may be what ends them: no third server gets it.
TEST_F(ScriptedRetryTest, ACallThatIsLostWithTwoServersIsReturned) {
  for (int i = 0; i < 1000; ++i) server_.EndNext({.code = grpc::StatusCode::UNAVAILABLE});
  Client client = Connect();
  const auto solved = client.Solve(Problem());
  ASSERT_FALSE(solved.has_value());
  EXPECT_EQ(solved.error().lost_attempts, 2);
  EXPECT_EQ(server_.calls(), 2);

  const auto streamed = client.StreamBatch(std::vector<Problem>(1), {}, [](int, const auto&) {});
  ASSERT_FALSE(streamed.has_value());
  EXPECT_EQ(streamed.error().lost_attempts, 2);
  EXPECT_EQ(server_.calls(), 4);
  EXPECT_THAT(server_.attempts(), testing::ElementsAre("", "2", "", "2"));
}

TEST_F(ScriptedRetryTest, AStepThatIsLostWithTwoServersIsReturned) {
  auto session = Connect().OpenSession();
  ASSERT_TRUE(session.has_value()) << session.error().message;
  for (int step = 1; step <= 3; ++step) {
    const bool is_deadly = step == 3;
    for (int i = 0; i < (is_deadly ? 1000 : 1); ++i) {
      server_.EndNext({.code = grpc::StatusCode::UNKNOWN});
    }
    const auto received = session->Step(Problem());
    ASSERT_EQ(received.has_value(), !is_deadly) << step;
    EXPECT_EQ(received ? 0 : received.error().lost_attempts, is_deadly ? 2 : 0);
  }
  // Each loss but the last opens a stream, which says that it is the second attempt.
  EXPECT_THAT(server_.attempts(), testing::ElementsAre("", "2", "2", "2"));
}

// A proxy that has no server for it says so, and that may pass.
TEST_F(ScriptedRetryTest, ACallThatAProxyGaveToNoServerIsNotLost) {
  for (int i = 0; i < 3; ++i) {
    server_.EndNext({.code = grpc::StatusCode::UNAVAILABLE, .message = "no healthy upstream"});
  }
  const auto solved = Connect().Solve(Problem());
  EXPECT_TRUE(solved.has_value()) << solved.error().message;
  EXPECT_EQ(server_.calls(), 4);
}

// Every server would say the same of the message.
TEST_F(ScriptedRetryTest, AMessageThatIsTooLargeIsNotSentAgain) {
  server_.EndNext({.code = grpc::StatusCode::RESOURCE_EXHAUSTED,
                   .message = "Received message larger than max (9 vs. 4)"});
  EXPECT_FALSE(Connect().Solve(Problem()).has_value());
  EXPECT_EQ(server_.calls(), 1);
}

TEST_F(ScriptedRetryTest, TheLongestTimesAreNoLimits) {
  auto client =
      Client::Connect(server_.address(), {.connect_timeout = std::chrono::nanoseconds::max(),
                                          .reconnect_within = std::chrono::nanoseconds::max()});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  server_.EndNext({.code = grpc::StatusCode::UNAVAILABLE});
  const auto solved = client->Solve(Problem());
  EXPECT_TRUE(solved.has_value()) << solved.error().message;

  auto session = client->OpenSession();
  ASSERT_TRUE(session.has_value()) << session.error().message;
  server_.EndNext({.code = grpc::StatusCode::UNAVAILABLE});
  const auto stepped = session->Step(Problem());
  EXPECT_TRUE(stepped.has_value()) << stepped.error().message;
}

// In the order of the server, which is from the last problem to the first.
TEST_F(ScriptedRetryTest, OnlyProblemsWithoutAnOutcomeAreStreamedAgain) {
  server_.EndNext({.code = grpc::StatusCode::UNKNOWN, .after = 4});
  server_.EndNext({.code = grpc::StatusCode::CANCELLED, .after = 2});
  server_.EndNext({.code = grpc::StatusCode::UNAVAILABLE, .with_identity = true, .after = 0});
  std::vector<Problem> batch(8);
  for (int i = 0; i < 8; ++i) batch[i].time_step = 100 + i;
  std::vector<int> order;
  const auto status =
      Connect().StreamBatch(batch, {}, [&](int index, const Client::SolveOutcome& outcome) {
        order.push_back(index);
        EXPECT_EQ(outcome->cost, 100 + index);
      });
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_THAT(order, testing::ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_THAT(server_.batch_sizes(), testing::ElementsAre(8, 4, 2, 2));
}

TEST_F(ScriptedRetryTest, ABatchThatIsLostAfterItsLastOutcomeIsComplete) {
  server_.EndNext({.code = grpc::StatusCode::UNKNOWN, .after = 2});
  int outcomes = 0;
  const auto count = [&](int, const Client::SolveOutcome&) { ++outcomes; };
  const auto status = Connect().StreamBatch(std::vector<Problem>(2), {}, count);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(outcomes, 2);
  EXPECT_EQ(server_.calls(), 1);
}

// Only a server that breaks the contract ends so; its problems must not be lost without a word.
TEST_F(ScriptedRetryTest, ABatchThatEndsWellWithoutAllOutcomesIsAnError) {
  server_.EndNext({.with_identity = true, .after = 1});
  int outcomes = 0;
  const auto count = [&](int, const Client::SolveOutcome&) { ++outcomes; };
  const auto status = Connect().StreamBatch(std::vector<Problem>(2), {}, count);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  EXPECT_EQ(outcomes, 1);
  EXPECT_EQ(server_.calls(), 1);
}

}  // namespace
}  // namespace sap::test::retry
