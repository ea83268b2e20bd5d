// Calls and sessions in the background: the answers of those that block, from one thread of the
// client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "client/cpp/client.h"
#include "tests/client/cpp/session_steps.h"
#include "tests/support/await.h"
#include "tests/support/faulty_link.h"
#include "tests/support/transports.h"

namespace sap::test::background {
namespace {

using client::Client;
using client::ErrorCode;
using client::Problem;
using client::Session;
using client::SolveOptions;

Problem Bad() {
  Problem problem = SceneAt(0);
  problem.contacts.law.friction[2] = -0.3;
  return problem;
}

// The outcome of a call that start(done) begins.
template <typename Outcome, typename Start>
Outcome OutcomeOf(const Start& start) {
  std::promise<Outcome> outcome;
  start([&](Outcome arrived) { outcome.set_value(std::move(arrived)); });
  return outcome.get_future().get();
}

class BackgroundTest : public testing::TestWithParam<const char*> {
 protected:
  Server server_{GetParam(), ConfigWithThreads(2)};
  Client client_{server_.Connect()};
};

TEST_P(BackgroundTest, ASolveHasTheOutcomeOfOneThatBlocks) {
  for (const Problem& problem : {SceneAt(0), Bad()}) {
    const auto outcome = OutcomeOf<Client::SolveOutcome>(
        [&](auto done) { client_.StartSolve(ViewOf(problem), {}, 1, done); });
    EXPECT_EQ(Seen(outcome), Seen(client_.Solve(problem)));
  }
}

TEST_P(BackgroundTest, BatchesHaveTheOutcomesOfThoseThatBlock) {
  const std::vector<Problem> problems{SceneAt(0), Bad(), SceneAt(2)};
  std::vector<ContactProblemView> views;
  for (const Problem& problem : problems) views.push_back(ViewOf(problem));
  const auto outcomes = OutcomeOf<std::vector<Client::SolveOutcome>>(
      [&](auto done) { client_.StartSolveBatch(views, {}, done); });
  std::map<int, std::string> streamed;
  const auto status = OutcomeOf<tl::expected<void, client::Error>>([&](auto done) {
    const auto sink = [&](int index, const Client::SolveOutcome& outcome) {
      streamed[index] = Seen(outcome);
    };
    client_.StartStreamBatch(views, {}, sink, done);
  });
  EXPECT_TRUE(status.has_value());
  ASSERT_EQ(outcomes.size(), 3u);
  ASSERT_EQ(streamed.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Seen(outcomes[i]), Seen(client_.Solve(problems[i])));
    EXPECT_EQ(streamed[i], Seen(outcomes[i]));
  }
}

TEST_P(BackgroundTest, DerivativesAreThoseOfACallThatBlocks) {
  const Problem problem = SceneAt(0);
  const std::vector<double> ones(17, 1.0);
  const std::vector<client::Cotangent> cotangents{{.velocity = ones}};
  const auto blocking = client_.Differentiate(problem, cotangents);
  ASSERT_TRUE(blocking.has_value()) << blocking.error().message;
  const auto request = ViewOf(problem, cotangents, client::DifferentiateOptions());
  const auto one = OutcomeOf<Client::DerivativesOutcome>(
      [&](auto done) { client_.StartDifferentiate(request, done); });
  const std::vector<client::DifferentiateView> requests(2, request);
  const auto two = OutcomeOf<std::vector<Client::DerivativesOutcome>>(
      [&](auto done) { client_.StartDifferentiateBatch(requests, {}, done); });
  ASSERT_EQ(two.size(), 2u);
  for (const auto* outcome : {&one, &two[0], &two[1]}) {
    ASSERT_TRUE(outcome->has_value()) << outcome->error().message;
    EXPECT_EQ((*outcome)->gradients[0].applied_impulse, blocking->gradients[0].applied_impulse);
  }
}

TEST_P(BackgroundTest, InformationAndHealthAreThoseOfCallsThatBlock) {
  const auto info = OutcomeOf<tl::expected<client::ServerInfo, client::Error>>(
      [&](auto done) { client_.StartInfo({}, done); });
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->boot_id, client_.Info()->boot_id);
  const auto health = OutcomeOf<tl::expected<bool, client::Error>>(
      [&](auto done) { client_.StartHealth({}, done); });
  EXPECT_EQ(health.value_or(false), *client_.Health());
}

INSTANTIATE_TEST_SUITE_P(Transports, BackgroundTest, testing::Values("embedded:", "tcp:", "unix:"),
                         TransportName);

// A server behind a link that swallows what is sent.
class StalledBackgroundTest : public testing::Test {
 protected:
  client::SessionOptions InBackground() const { return {.background = true}; }

  Server server_{"tcp:", ConfigWithThreads(2)};
  FaultyLink link_{server_.grpc()->address()};
};

TEST_F(StalledBackgroundTest, ACallEndsWithItsFlagAndAllEndWithTheClient) {
  std::optional<Client> client = *Client::Connect(link_.address());
  ASSERT_TRUE(client->Solve(SceneAt(0)).has_value());
  link_.Stall(true);
  const Problem problem = SceneAt(0);
  std::promise<Client::SolveOutcome> flagged, left;
  std::atomic<bool> cancelled{false};
  SolveOptions options;
  options.call.cancelled = &cancelled;
  client->StartSolve(ViewOf(problem), options, 1,
                     [&](Client::SolveOutcome outcome) { flagged.set_value(std::move(outcome)); });
  client->StartSolve(ViewOf(problem), {}, 1,
                     [&](Client::SolveOutcome outcome) { left.set_value(std::move(outcome)); });
  cancelled = true;
  EXPECT_EQ(flagged.get_future().get().error().code, ErrorCode::kCancelled);
  std::future<Client::SolveOutcome> of_left = left.get_future();
  EXPECT_EQ(of_left.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  client.reset();
  ASSERT_EQ(of_left.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(of_left.get().error().code, ErrorCode::kCancelled);
}

TEST_F(StalledBackgroundTest, ASessionThatIsNotAnsweredCanBeDestroyed) {
  auto client = Client::Connect(link_.address());
  std::optional<Session> session = *client->OpenSession({}, InBackground());
  ASSERT_TRUE(session->Step(SceneAt(0)).has_value());
  link_.Stall(true);
  ASSERT_TRUE(session->Send(SceneAt(1)).has_value());
  session.reset();
  session = *client->OpenSession({}, InBackground());
  EXPECT_TRUE(session->opening());
  session.reset();
}

TEST_F(StalledBackgroundTest, ASessionThatCannotBeOpenedSaysWhy) {
  auto client = Client::Connect(link_.address());
  SolveOptions wrong;
  wrong.solver.relative_tolerance = -1;
  auto session = client->OpenSession(wrong, InBackground());
  ASSERT_TRUE(session.has_value());
  EXPECT_FALSE(session->Step(SceneAt(0)).has_value());
  EXPECT_EQ(session->end_reason()->field, "options.relative_tolerance");
  EXPECT_FALSE(session->open());
}

// As an event loop uses it: it never waits, and goes on when it was notified.
TEST_F(StalledBackgroundTest, ASessionGoesOnWithoutAnyoneWaitingAndTellsSo) {
  constexpr int kSteps = 40;
  auto client = Client::Connect(link_.address());
  auto session = client->OpenSession({}, InBackground());
  ASSERT_TRUE(session.has_value());
  std::atomic<int> news{1};
  session->Notify([&] { ++news; });
  Session whole = *client->OpenSession();
  int sent = 0, received = 0;
  while (received < kSteps) {
    ASSERT_TRUE(Await([&] { return news.exchange(0) > 0; }));
    while (sent < kSteps && session->RoomReady()) {
      ASSERT_TRUE(session->Send(SceneAt(++sent)).has_value());
    }
    while (received < sent && session->OutcomeReady()) {
      const auto outcome = session->Receive();
      ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
      ASSERT_TRUE(whole.Send(SceneAt(++received)).has_value());
      EXPECT_EQ(Seen(*outcome), Seen(*whole.Receive())) << received;
      if (received % 9 == 0) link_.Cut();
      if (sent < kSteps) ++news;  // there is room again
    }
  }
  EXPECT_GT(link_.connections(), 4);
  session->Notify(nullptr);
  EXPECT_TRUE(session->Close().has_value());
}

int NumThreads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<int>(std::distance(begin(threads), end(threads)));
}

TEST(ThousandSessionsTest, NeedNoThreads) {
  constexpr int kSessions = 1000;
  ServerConfig config = ConfigWithThreads(2);
  config.admission.all.max_sessions = kSessions + 1;
  config.admission.client.max_sessions = kSessions + 1;
  Server server("tcp:", config);
  Client client = server.Connect();
  Session whole = *client.OpenSession();
  const std::string expected[] = {Seen(whole.Step(SceneAt(0))), Seen(whole.Step(SceneAt(1)))};
  std::vector<Session> sessions;
  sessions.push_back(*client.OpenSession({}, {.background = true}));
  ASSERT_TRUE(sessions[0].Step(SceneAt(0)).has_value());
  ASSERT_TRUE(sessions[0].Reset().has_value());
  const int threads = NumThreads();
  while (sessions.size() < kSessions) {
    sessions.push_back(*client.OpenSession({}, {.background = true}));
  }
  for (int step = 0; step < 2; ++step) {
    for (Session& session : sessions) ASSERT_TRUE(session.Send(SceneAt(step)).has_value());
    for (Session& session : sessions) {
      const auto outcome = session.Receive();
      ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
      EXPECT_EQ(Seen(outcome->solution), expected[step]);
    }
  }
  EXPECT_LT(NumThreads(), threads + 20);  // gRPC has some of its own
}

}  // namespace
}  // namespace sap::test::background
