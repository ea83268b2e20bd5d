// Another thread ends whatever waits for a server, and time limits end the waits of a session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "client/cpp/client.h"
#include "tests/client/cpp/session_steps.h"
#include "tests/support/await.h"
#include "tests/support/faulty_link.h"
#include "tests/support/transports.h"

namespace sap::test::cancellation {
namespace {

using client::Client;
using client::ErrorCode;
using client::Problem;
using client::Session;
using client::SolveOptions;
using std::chrono::milliseconds;

client::WaitLimit In(milliseconds time) {
  return {.until = std::chrono::steady_clock::now() + time};
}

class CancellationTest : public testing::Test {
 protected:
  // The error of a call that waits until the flag is set.
  template <typename Call>
  client::Error Cancelled(const Call& call) {
    auto result = std::async(std::launch::async, call);
    EXPECT_EQ(result.wait_for(milliseconds(60)), std::future_status::timeout);
    flag_ = true;
    auto ended = result.get();
    flag_ = false;
    EXPECT_FALSE(ended.has_value());
    return ended ? client::Error() : ended.error();
  }

  Server server_{"tcp:", ConfigWithThreads(2)};
  FaultyLink link_{server_.grpc()->address()};
  Client client_{*Client::Connect(link_.address(), {.reconnect_within = kLong})};
  const Problem problem_{SceneAt(0)};
  std::atomic<bool> flag_{false};
  const client::CallOptions call_{.cancelled = &flag_};
};

TEST_F(CancellationTest, OfEveryCallThatIsUnderWay) {
  ASSERT_TRUE(client_.Solve(SceneAt(0)).has_value());
  link_.Stall(true);
  const Problem problem = SceneAt(0);
  SolveOptions options;
  options.call = call_;
  const auto solve = [&] { return client_.Solve(problem, options); };
  EXPECT_EQ(Cancelled(solve).code, ErrorCode::kCancelled);
  const auto batch = [&] { return client_.SolveBatch({&problem, 1}, options)[0]; };
  EXPECT_EQ(Cancelled(batch).code, ErrorCode::kCancelled);
  const auto stream = [&] {
    return client_.StreamBatch({&problem, 1}, options, [](int, const auto&) {});
  };
  EXPECT_EQ(Cancelled(stream).code, ErrorCode::kCancelled);
  const auto differentiate = [&] { return client_.Differentiate(problem, {}, {.solve = options}); };
  EXPECT_EQ(Cancelled(differentiate).code, ErrorCode::kCancelled);
  const auto open = [&] { return client_.OpenSession(options); };
  EXPECT_EQ(Cancelled(open).code, ErrorCode::kCancelled);
  EXPECT_EQ(Cancelled([&] { return client_.Info(call_); }).code, ErrorCode::kCancelled);
  EXPECT_EQ(Cancelled([&] { return client_.Health(call_); }).code, ErrorCode::kCancelled);
  link_.Stall(false);
  EXPECT_TRUE(client_.Solve(problem).has_value());
}

// In the pauses between attempts, and while connections are refused.
TEST_F(CancellationTest, OfACallThatIsRetried) {
  auto gone = std::make_unique<Server>("tcp:", ConfigWithThreads(2));
  Client client = gone->Connect({.reconnect_within = kLong});
  Session session = *client.OpenSession();
  gone = nullptr;
  SolveOptions options;
  options.call = call_;
  EXPECT_EQ(Cancelled([&] { return client.Solve(SceneAt(0), options); }).code,
            ErrorCode::kCancelled);
  const auto step = [&] {
    return session.Step(ViewOf(problem_), std::nullopt, {.cancelled = &flag_});
  };
  EXPECT_EQ(Cancelled(step).code, ErrorCode::kCancelled);
  EXPECT_TRUE(session.open());
}

TEST_F(CancellationTest, OfAConnectionThatNobodyAnswers) {
  link_.Stall(true);
  const auto connect = [&] {
    return Client::Connect(link_.address() + "," + link_.address(),
                           {.connect_timeout = kLong, .cancelled = &flag_});
  };
  EXPECT_EQ(Cancelled(connect).code, ErrorCode::kCancelled);
}

TEST_F(CancellationTest, OfASolveInThisProcess) {
  Client embedded = *Client::Connect("embedded:");
  const Problem endless = SphereBlock(20);
  SolveOptions options;
  options.call = call_;
  options.solver.relative_tolerance = 1e-14;
  EXPECT_EQ(Cancelled([&] {
              while (true) {
                if (auto solved = embedded.Solve(endless, options); !solved) return solved;
              }
            }).code,
            ErrorCode::kCancelled);
}

// Waiting without taking.
TEST_F(CancellationTest, AWaitForAnOutcomeEndsInTime) {
  Session session = *client_.OpenSession();
  link_.Stall(true);
  ASSERT_TRUE(session.Send(SceneAt(1)).has_value());
  EXPECT_FALSE(session.AwaitOutcome(In(milliseconds(30))));
  EXPECT_FALSE(session.OutcomeReady());
  link_.Stall(false);
  EXPECT_TRUE(session.AwaitOutcome(In(kLong)));
  EXPECT_TRUE(session.AwaitOutcome(In(milliseconds(0))));
  EXPECT_EQ(session.Receive()->step_id, 1u);
}

TEST_F(CancellationTest, AWaitForRoomEndsInTimeAndTheStepIsNotSent) {
  Session session = *client_.OpenSession();
  ASSERT_TRUE(session.Step(SceneAt(0)).has_value());
  link_.Stall(true);
  while (session.RoomReady()) ASSERT_TRUE(session.Send(SceneAt(1)).has_value());
  const int in_flight = session.in_flight();
  const auto sent = session.Send(ViewOf(problem_), std::nullopt, In(milliseconds(30)));
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(session.in_flight(), in_flight);
  link_.Stall(false);
  EXPECT_TRUE(session.AwaitRoom(In(kLong)));
  EXPECT_TRUE(session.Send(SceneAt(2)).has_value());
}

// A session that nothing happens to, and one whose steps are withdrawn at each stage of their way.
class WithdrawTest : public CancellationTest {
 protected:
  // The next step of both.
  void Step(int step) {
    EXPECT_EQ(Seen(session_.Step(SceneAt(step))), Seen(whole_.Step(SceneAt(step)))) << step;
  }

  Session session_{*client_.OpenSession()};
  Session whole_{*client_.OpenSession()};
};

TEST_F(WithdrawTest, AStepThatIsStoppedHasNoEffect) {
  for (int step = 1; step <= 6; ++step) {
    Step(step);
    link_.Stall(true);
    const Problem unwanted = SceneAt(100 + step);
    const auto stopped = session_.Step(ViewOf(unwanted), std::nullopt, In(milliseconds(10)));
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(session_.in_flight(), 0);
    link_.Stall(false);
  }
  Step(7);
}

TEST_F(WithdrawTest, AStepThatIsStoppedWhileNoServerIsThereHasNoEffect) {
  Step(1);
  link_.Redirect("127.0.0.1:1");
  link_.Cut();
  const Problem unwanted = SceneAt(100);
  for (int i = 0; i < 2; ++i) {
    const auto stopped = session_.Step(ViewOf(unwanted), std::nullopt, In(milliseconds(50)));
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  }
  link_.Redirect(server_.grpc()->address());
  Step(2);
  Step(3);
}

TEST_F(WithdrawTest, AStepThatIsAnsweredButNotReceivedHasNoEffect) {
  for (int step = 1; step <= 4; ++step) {
    Step(step);
    const auto first = session_.Send(SceneAt(100 + step));
    ASSERT_TRUE(session_.Send(SceneAt(200 + step)).has_value());
    ASSERT_TRUE(session_.AwaitOutcome(In(kLong)));
    EXPECT_TRUE(session_.Withdraw(*first).has_value());
    EXPECT_EQ(session_.in_flight(), 0);
  }
  Step(5);
}

TEST_F(WithdrawTest, EarlierStepsKeepTheirOutcomes) {
  Step(1);
  ASSERT_TRUE(session_.Send(SceneAt(2)).has_value());
  ASSERT_TRUE(session_.Send(SceneAt(3)).has_value());
  const auto unwanted = session_.Send(SceneAt(100));
  EXPECT_TRUE(session_.Withdraw(*unwanted).has_value());
  EXPECT_EQ(session_.in_flight(), 2);
  for (int step = 2; step <= 3; ++step) {
    EXPECT_EQ(Seen(session_.Receive()->solution), Seen(whole_.Step(SceneAt(step)))) << step;
  }
  Step(4);
}

TEST_F(WithdrawTest, BeforeAnyStepWasSolved) {
  const auto unwanted = session_.Send(SceneAt(100));
  ASSERT_TRUE(session_.AwaitOutcome(In(kLong)));
  EXPECT_TRUE(session_.Withdraw(*unwanted).has_value());
  Step(1);
  Step(2);
}

TEST_F(WithdrawTest, ASessionThatMayNotReconnectEnds) {
  Session session = *client_.OpenSession({}, {.reconnect_within = milliseconds(0)});
  ASSERT_TRUE(session.Step(SceneAt(0)).has_value());
  const auto sent = session.Send(SceneAt(1));
  const auto withdrawn = session.Withdraw(*sent);
  ASSERT_FALSE(withdrawn.has_value());
  EXPECT_EQ(withdrawn.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(session.Step(SceneAt(1)).error().message, withdrawn.error().message);
}

TEST_F(WithdrawTest, AnEmbeddedServerHasSolvedTheStep) {
  Session embedded = *Client::Connect("embedded:")->OpenSession();
  EXPECT_EQ(embedded.Withdraw(*embedded.Send(SceneAt(0))).error().code,
            ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(embedded.Receive().has_value());
}

TEST_F(WithdrawTest, AResetHoldsOnANewStream) {
  Step(1);
  Step(2);
  EXPECT_TRUE(session_.Reset().has_value());
  link_.Cut();
  Session whole = *client_.OpenSession();
  EXPECT_EQ(Seen(session_.Step(SceneAt(3))), Seen(whole.Step(SceneAt(3))));
  EXPECT_EQ(Seen(session_.Step(SceneAt(4))), Seen(whole.Step(SceneAt(4))));
}

class ResetTest : public testing::TestWithParam<const char*> {};

TEST_P(ResetTest, TheNextStepIsTheFirstOfASession) {
  const Server server(GetParam(), ConfigWithThreads(2));
  Session session = *server.Connect().OpenSession();
  const std::string first = Seen(session.Step(SceneAt(0)));
  const std::string second = Seen(session.Step(SceneAt(1)));
  EXPECT_TRUE(session.Reset().has_value());
  EXPECT_EQ(Seen(session.Step(SceneAt(0))), first);
  EXPECT_EQ(Seen(session.Step(SceneAt(1))), second);
  ASSERT_TRUE(session.Send(SceneAt(2)).has_value());
  EXPECT_THAT(session.Reset().error().message, testing::HasSubstr("1 steps are in flight"));
}

TEST_P(ResetTest, HoldsUntilAStepIsSolved) {
  const Server server(GetParam(), ConfigWithThreads(2));
  Session session = *server.Connect().OpenSession();
  const std::string first = Seen(session.Step(SceneAt(0)));
  ASSERT_TRUE(session.Step(SceneAt(1)).has_value());
  EXPECT_TRUE(session.Reset().has_value());
  Problem bad = SceneAt(0);
  bad.time_step = -1;
  EXPECT_FALSE(session.Step(bad).has_value());
  EXPECT_EQ(Seen(session.Step(SceneAt(0))), first);
}

INSTANTIATE_TEST_SUITE_P(Transports, ResetTest, testing::Values("embedded:", "tcp:", "unix:"),
                         TransportName);

}  // namespace
}  // namespace sap::test::cancellation
