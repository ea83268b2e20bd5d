// Sessions and batches of the client library, alike over every transport.
#include "client/cpp/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <optional>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/await.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"
#include "tests/support/transports.h"

namespace sap::client {
namespace {

using test::Bits;
using testing::HasSubstr;

// The mixed scene without a guess, a little different at each step.
Problem SceneAt(int step = 0) {
  Problem problem = *FromMessage(test::MixedProblem());
  problem.trees.guess_velocity.clear();
  problem.bodies.guess_velocity.clear();
  problem.bodies.free_motion_velocity[2] -= 0.01 * step;
  return problem;
}

Problem Bad() {
  Problem problem = SceneAt();
  problem.contacts.law.friction[2] = -0.3;
  return problem;
}

class ClientSessionTest : public testing::TestWithParam<const char*> {
 protected:
  ClientSessionTest()
      : server_(GetParam(), test::ConfigWithThreads(2)), client_(server_.Connect()) {}

  Session Open(const SolveOptions& options = {}) {
    auto session = client_.OpenSession(options);
    EXPECT_TRUE(session.has_value()) << session.error().message;
    return std::move(*session);
  }

  test::Server server_;
  Client client_;
};

TEST_P(ClientSessionTest, AStepIsTheUnaryCallWithTheVelocitiesOfTheStepBefore) {
  Session session = Open();
  Problem problem = SceneAt();
  for (int i = 0; i < 5; ++i) {
    const auto step = session.Step(SceneAt(i));
    ASSERT_TRUE(step.has_value()) << step.error().message;
    problem.bodies.free_motion_velocity = SceneAt(i).bodies.free_motion_velocity;
    const auto unary = client_.Solve(problem);
    ASSERT_TRUE(unary.has_value()) << unary.error().message;
    EXPECT_EQ(Bits(*step), Bits(*unary)) << i;
    problem.trees.guess_velocity.assign(step->velocity.begin(), step->velocity.begin() + 5);
    problem.bodies.guess_velocity.assign(step->velocity.begin() + 5, step->velocity.end());
  }
  EXPECT_TRUE(session.open());
  EXPECT_TRUE(session.Close().has_value());
}

TEST_P(ClientSessionTest, AClientOfLowLatencyGetsTheSameBitsAndErrors) {
  Client client = server_.Connect({.threads = 2, .low_latency = true});
  Session plain = Open();
  auto quick = client.OpenSession();
  ASSERT_TRUE(quick.has_value()) << quick.error().message;
  // The last one takes longer than a client polls.
  for (const Problem& problem : {SceneAt(0), SceneAt(1), Bad(), test::SphereBlock(8)}) {
    const auto expected = client_.Solve(problem);
    const auto solution = client.Solve(problem);
    const auto batch = client.SolveBatch(std::vector{problem, problem});
    ASSERT_EQ(batch.size(), 2u);
    const auto expected_step = plain.Step(problem);
    const auto step = quick->Step(problem);
    if (!expected) {
      for (const auto& refused : {solution, batch[0], batch[1], step}) {
        EXPECT_EQ(refused.error().message, expected.error().message);
      }
      continue;
    }
    ASSERT_TRUE(expected_step && solution && batch[0] && batch[1] && step);
    EXPECT_EQ(Bits(*solution), Bits(*expected));
    EXPECT_EQ(Bits(*batch[0]), Bits(*expected));
    EXPECT_EQ(Bits(*batch[1]), Bits(*expected));
    EXPECT_EQ(Bits(*step), Bits(*expected_step));
  }
  EXPECT_TRUE(quick->Close().has_value());
}

TEST_P(ClientSessionTest, StepsSentAheadAreReceivedInOrder) {
  Session waiting = Open();
  Session ahead = Open();
  constexpr int kSteps = 30;  // more than a server takes in
  for (int i = 0; i < kSteps; ++i) {
    const auto sent = ahead.Send(i == 7 ? Bad() : SceneAt(i));
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
    EXPECT_EQ(*sent, static_cast<uint64_t>(i + 1));
  }
  EXPECT_EQ(ahead.in_flight(), kSteps);
  for (int i = 0; i < kSteps; ++i) {
    const auto outcome = ahead.Receive();
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->step_id, static_cast<uint64_t>(i + 1));
    EXPECT_EQ(outcome->warm_started, i > 0 && i != 7);
    const auto expected = waiting.Step(i == 7 ? Bad() : SceneAt(i));
    ASSERT_EQ(outcome->solution.has_value(), expected.has_value());
    if (expected.has_value()) {
      EXPECT_EQ(Bits(*outcome->solution), Bits(*expected)) << i;
    } else {
      EXPECT_EQ(outcome->solution.error().field, expected.error().field);
    }
  }
  EXPECT_EQ(ahead.in_flight(), 0);
}

TEST_P(ClientSessionTest, AFailedStepIsAnErrorAndTheSessionGoesOn) {
  Session session = Open();
  ASSERT_TRUE(session.Step(SceneAt()).has_value());
  const auto failed = session.Step(Bad());
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(failed.error().field, "contacts.friction[2]");
  EXPECT_TRUE(session.open());
  const auto next = session.Step(SceneAt());
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->islands[0].iterations, 0);  // it still knows the velocities of the first
}

TEST_P(ClientSessionTest, OptionsAreThoseOfTheSessionOrOfTheStep) {
  SolveOptions options;
  options.solver.max_iterations = 0;
  options.response_mask = {"islands"};
  Session session = Open(options);
  const auto step = session.Step(SceneAt());
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_EQ(step->islands[0].status, SolveStatus::kIterationLimit);
  EXPECT_TRUE(step->velocity.empty());
  const auto other = session.Step(SceneAt(), SolveOptions());
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(other->islands[0].status, SolveStatus::kConverged);
  EXPECT_FALSE(other->velocity.empty());
}

TEST_P(ClientSessionTest, WhatCannotBeAskedIsRefused) {
  Session session = Open();
  const auto nothing = session.Receive();
  ASSERT_FALSE(nothing.has_value());
  EXPECT_THAT(nothing.error().message, HasSubstr("no step is in flight"));
  SolveOptions with_deadline;
  with_deadline.deadline = std::chrono::seconds(1);
  EXPECT_EQ(session.Step(SceneAt(), with_deadline).error().field, "options.deadline");
  ASSERT_TRUE(session.Send(SceneAt()).has_value());
  EXPECT_THAT(session.Step(SceneAt()).error().message, HasSubstr("1 steps are in flight"));
  EXPECT_TRUE(session.Receive().has_value());
  EXPECT_TRUE(session.Step(SceneAt()).has_value());
  EXPECT_TRUE(session.Close().has_value());
  EXPECT_FALSE(session.open());
  EXPECT_THAT(session.Step(SceneAt()).error().message, HasSubstr("closed"));
  EXPECT_FALSE(session.Close().has_value());

  SolveOptions wrong;
  wrong.solver.relative_tolerance = -1;
  const auto refused = client_.OpenSession(wrong);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().field, "options.relative_tolerance");
}

// In this process a step is solved when it is sent.
TEST(EmbeddedSessionTest, TellsOfEachOutcomeAndEndsWithoutAStep) {
  auto client = Client::Connect("embedded:", {.threads = 1});
  auto session = client->OpenSession();
  int news = 0;
  session->Notify([&] { ++news; });
  ASSERT_TRUE(session->Send(SceneAt()).has_value());
  ASSERT_TRUE(session->Send(Bad()).has_value());
  EXPECT_EQ(news, 2);
  EXPECT_EQ(session->Withdraw(1).error().code, ErrorCode::kFailedPrecondition);
  session->Notify(nullptr);
  EXPECT_TRUE(session->Close().has_value());
  EXPECT_EQ(session->in_flight(), 0);
  SolveOptions options;
  options.deadline = std::chrono::nanoseconds(1);
  auto late = client->OpenSession(options);
  EXPECT_FALSE(late->open());
  EXPECT_EQ(late->end_reason()->code, ErrorCode::kDeadlineExceeded);
}

TEST_P(ClientSessionTest, TheDeadlineIsThatOfTheSession) {
  SolveOptions options;
  options.deadline = std::chrono::milliseconds(150);
  std::optional<Session> session;
  // Long enough for a step: a busy machine may need several attempts.
  ASSERT_TRUE(test::Await([&] {
    *options.deadline *= 2;
    auto opened = client_.OpenSession(options);
    if (!opened) return false;
    session.emplace(std::move(*opened));
    return session->Step(SceneAt()).has_value();
  }));
  const Problem endless = test::SphereBlock(20);
  auto outcome = session->Step(endless);
  // Steps are cut or fail just before the deadline of the session.
  while (session->open()) outcome = session->Step(endless);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(session->Receive().error().code, ErrorCode::kDeadlineExceeded);
  options.deadline = std::chrono::nanoseconds(0);
  EXPECT_EQ(client_.OpenSession(options).error().code, ErrorCode::kDeadlineExceeded);
}

TEST_P(ClientSessionTest, SessionsOfOneClientAreIndependentAndMayOutliveIt) {
  Session first = Open();
  Session second = Open();
  { const Client gone = std::move(client_); }
  ASSERT_TRUE(first.Step(SceneAt()).has_value());
  ASSERT_TRUE(second.Send(SceneAt()).has_value());
  EXPECT_FALSE(second.Receive()->warm_started);
}

TEST_P(ClientSessionTest, ABatchHasOneOutcomePerProblem) {
  std::vector<Problem> problems;
  for (int i = 0; i < 9; ++i) problems.push_back(i == 4 ? Bad() : SceneAt(i));
  const auto outcomes = client_.SolveBatch(problems);
  ASSERT_EQ(outcomes.size(), 9u);
  std::vector<test::AnswerBits> streamed(9);
  std::mutex mutex;
  const auto status =
      client_.StreamBatch(problems, {}, [&](int index, tl::expected<Solution, Error> outcome) {
        ASSERT_TRUE(mutex.try_lock());
        streamed[index] = outcome ? Bits(*outcome) : test::AnswerBits{outcome.error().field};
        mutex.unlock();
      });
  EXPECT_TRUE(status.has_value());
  for (int i = 0; i < 9; ++i) {
    const auto unary = client_.Solve(problems[i]);
    ASSERT_EQ(outcomes[i].has_value(), unary.has_value());
    if (i == 4) {
      EXPECT_EQ(outcomes[i].error().field, "contacts.friction[2]");
      EXPECT_EQ(streamed[i].bytes, "contacts.friction[2]");
    } else {
      EXPECT_EQ(Bits(*outcomes[i]), Bits(*unary)) << i;
      EXPECT_EQ(streamed[i], Bits(*unary)) << i;
    }
  }
}

TEST_P(ClientSessionTest, AnEmptyBatchIsEmptyAndABadOneFailsAsAWhole) {
  EXPECT_TRUE(client_.SolveBatch(std::vector<Problem>()).empty());
  SolveOptions wrong;
  wrong.solver.max_iterations = -1;
  const std::vector<Problem> problems = {SceneAt(), SceneAt()};
  const auto outcomes = client_.SolveBatch(problems, wrong);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[1].error().field, "options.max_iterations");
  const auto status = client_.StreamBatch(
      problems, wrong, [](int, const tl::expected<Solution, Error>&) { FAIL(); });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().field, "options.max_iterations");
}

INSTANTIATE_TEST_SUITE_P(Transports, ClientSessionTest,
                         testing::Values("embedded:", "tcp:", "unix:"), test::TransportName);

// The step that the server works on when it drains is answered before the session ends. The answer
// is short: one of megabytes may be cut off by the end of the connection (server/README.md, 9).
TEST(DrainedSessionTest, TheStepUnderWayIsAnswered) {
  test::Server server("tcp:", test::ConfigWithThreads(2));
  Client client = server.Connect({.reconnect_within = {}});
  auto session = client.OpenSession();
  ASSERT_TRUE(session.has_value());
  ASSERT_TRUE(session->Step(SceneAt()).has_value());
  SolveOptions limited;
  limited.time_budget = std::chrono::seconds(5);
  limited.response_mask = {"islands"};
  ASSERT_TRUE(session->Send(test::SphereBlock(20), limited).has_value());
  ASSERT_TRUE(test::Await([&] { return server.handler()->queue().running() > 0; }));
  server.grpc()->Drain(test::kLong);
  EXPECT_EQ(server.handler()->num_sessions(), 0);
  const auto outcome = session->Receive();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(outcome->solution.has_value());
  ASSERT_FALSE(session->Receive().has_value());
  const auto next = session->Step(SceneAt(2));
  ASSERT_FALSE(next.has_value());
  EXPECT_EQ(next.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(session->open());
}

}  // namespace
}  // namespace sap::client
