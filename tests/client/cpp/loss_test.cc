// The rule on which calls are made again: by status, by its origin, and by kind of call.
#include "client/cpp/transport/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/support/await.h"
#include "tests/support/scripted_server.h"

namespace sap::test::loss {
namespace {

using client::Client;
using client::Error;
using client::ErrorCode;
using client::Problem;
using grpc::StatusCode;

constexpr const char* kIdentity = "0.2.0 x86-64-v3 0123456789abcdef";

struct Case {
  StatusCode code;
  bool with_identity;
  bool call_is_lost;
  bool session_is_lost;
};

constexpr Case kCases[] = {
    {StatusCode::UNAVAILABLE, false, true, true},
    {StatusCode::UNAVAILABLE, true, true, true},
    {StatusCode::CANCELLED, false, true, true},
    {StatusCode::CANCELLED, true, false, true},
    {StatusCode::INTERNAL, false, true, true},
    {StatusCode::INTERNAL, true, false, false},
    {StatusCode::UNKNOWN, false, true, true},
    {StatusCode::UNKNOWN, true, false, false},
    {StatusCode::ABORTED, false, true, true},
    {StatusCode::ABORTED, true, false, true},
    {StatusCode::RESOURCE_EXHAUSTED, false, true, true},
    {StatusCode::RESOURCE_EXHAUSTED, true, false, false},
    {StatusCode::DEADLINE_EXCEEDED, false, false, false},
    {StatusCode::DEADLINE_EXCEEDED, true, false, false},
    {StatusCode::INVALID_ARGUMENT, false, false, false},
    {StatusCode::INVALID_ARGUMENT, true, false, false},
    {StatusCode::FAILED_PRECONDITION, false, false, false},
    {StatusCode::FAILED_PRECONDITION, true, false, false},
    {StatusCode::UNAUTHENTICATED, false, false, false},
    {StatusCode::UNAUTHENTICATED, true, false, false},
    {StatusCode::PERMISSION_DENIED, false, false, false},
    {StatusCode::PERMISSION_DENIED, true, false, false},
    {StatusCode::UNIMPLEMENTED, false, false, false},
    {StatusCode::UNIMPLEMENTED, true, false, false},
};

// The first attempt of each call ends as the case says. A call that is lost has an answer, from a
// second attempt; another one has its error, and there is no second attempt.
class LossTest : public testing::TestWithParam<Case> {
 protected:
  LossTest() {
    server_.EndNext({.code = GetParam().code, .with_identity = GetParam().with_identity});
  }

  Client Connect(client::ConnectOptions options = {}) const {
    options.connect_timeout = kLong;
    auto client = Client::Connect(server_.address(), options);
    EXPECT_TRUE(client.has_value()) << client.error().message;
    return std::move(*client);
  }

  static Client::SolveOutcome StepOf(Client client) {
    auto session = client.OpenSession();
    if (!session) return tl::unexpected(session.error());
    return session->Step(Problem());
  }

  template <typename Status>
  void Expect(bool is_lost, const Status& status) const {
    EXPECT_EQ(status.has_value(), is_lost) << (status ? "answered" : status.error().message);
    EXPECT_EQ(server_.calls(), is_lost ? 2 : 1);
    if (!status) ExpectError(status.error());
  }

  // With the server that chose it.
  static void ExpectError(const Error& error) {
    EXPECT_EQ(error.message, "as the test says");
    EXPECT_EQ(error.server, GetParam().with_identity ? "0123456789abcdef" : "");
  }

  ScriptedServer server_{kIdentity};
};

TEST_P(LossTest, OfASolve) { Expect(GetParam().call_is_lost, Connect().Solve(Problem())); }

TEST_P(LossTest, OfABatch) {
  Expect(GetParam().call_is_lost, Connect().SolveBatch(std::vector<Problem>(1)).at(0));
}

TEST_P(LossTest, OfAStreamOfOutcomes) {
  int outcomes = 0;
  Expect(GetParam().call_is_lost,
         Connect().StreamBatch(std::vector<Problem>(1), {},
                               [&](int, const Client::SolveOutcome&) { ++outcomes; }));
  EXPECT_EQ(outcomes, GetParam().call_is_lost ? 1 : 0);
}

TEST_P(LossTest, OfASession) { Expect(GetParam().session_is_lost, StepOf(Connect())); }

TEST_P(LossTest, WithoutTimeToReconnectEveryErrorIsReturned) {
  Client client = Connect({.reconnect_within = {}});
  const auto solved = client.Solve(Problem());
  ASSERT_FALSE(solved.has_value());
  ExpectError(solved.error());
  server_.EndNext({.code = GetParam().code, .with_identity = GetParam().with_identity});
  const auto step = StepOf(std::move(client));
  ASSERT_FALSE(step.has_value());
  ExpectError(step.error());
  EXPECT_EQ(server_.calls(), 2);
}

INSTANTIATE_TEST_SUITE_P(Statuses, LossTest, testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = "Code" + std::to_string(test.param.code);
  return name + (test.param.with_identity ? "WithIdentity" : "WithoutIdentity");
});

}  // namespace
}  // namespace sap::test::loss
