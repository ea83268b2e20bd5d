// The rule on which calls are made again: by status, by who chose it, and by kind of call.
#include "client/cpp/transport/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/transport/transport.h"
#include "tests/support/await.h"
#include "tests/support/scripted_server.h"

namespace sap::test::loss {
namespace {

using client::Error;
using client::ErrorCode;
using client::Transport;
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

v1::SolveSessionRequest OpenRequest() {
  v1::SolveSessionRequest request;
  request.mutable_open();
  return request;
}

// The first attempt of each call ends as the case says. A call that is lost has an answer, from a
// second attempt; another one has its error, and there is no second attempt.
class LossTest : public testing::TestWithParam<Case> {
 protected:
  LossTest() {
    server_.EndNext({.code = GetParam().code, .with_identity = GetParam().with_identity});
  }

  std::unique_ptr<Transport> Connect(client::ConnectOptions options = {}) const {
    options.connect_timeout = kLong;
    auto transport = client::ConnectByGrpc(server_.address(), options);
    EXPECT_TRUE(transport.has_value()) << transport.error().message;
    return std::move(*transport);
  }

  static Transport::Status StepOf(Transport* transport) {
    const auto session = transport->OpenSession(OpenRequest(), std::nullopt);
    if (!session) return tl::unexpected(session.error());
    v1::SolveSessionRequest step;
    step.mutable_step()->set_step_id(1);
    (*session)->Send(&step);
    v1::SolveSessionResponse response;
    return (*session)->Receive(&response);
  }

  void Expect(bool is_lost, const Transport::Status& status) const {
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

TEST_P(LossTest, OfASolve) {
  v1::SolveResponse response;
  Expect(GetParam().call_is_lost, Connect()->Solve({}, std::nullopt, &response));
}

TEST_P(LossTest, OfABatch) {
  v1::SolveBatchResponse response;
  Expect(GetParam().call_is_lost, Connect()->SolveBatch({}, std::nullopt, &response));
}

TEST_P(LossTest, OfAStreamOfOutcomes) {
  v1::StreamBatchRequest request;
  request.add_problems();
  int outcomes = 0;
  Expect(GetParam().call_is_lost,
         Connect()->StreamBatch(request, std::nullopt,
                                [&](const v1::StreamBatchResponse&) { ++outcomes; }));
  EXPECT_EQ(outcomes, GetParam().call_is_lost ? 1 : 0);
}

TEST_P(LossTest, OfASession) { Expect(GetParam().session_is_lost, StepOf(Connect().get())); }

TEST_P(LossTest, WithoutTimeToReconnectEveryErrorIsReturned) {
  const auto transport = Connect({.reconnect_within = {}});
  v1::SolveResponse response;
  const Transport::Status solved = transport->Solve({}, std::nullopt, &response);
  ASSERT_FALSE(solved.has_value());
  ExpectError(solved.error());
  server_.EndNext({.code = GetParam().code, .with_identity = GetParam().with_identity});
  const Transport::Status step = StepOf(transport.get());
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
