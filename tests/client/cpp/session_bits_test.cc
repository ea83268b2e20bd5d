// Two seconds of falling clutter as a session: the same bits over every transport, for any number
// of threads, sent ahead or not, as unary calls with the same guesses, and solved again from a
// recording.
#include <gtest/gtest.h>

#include "client/cpp/simulation/simulation.h"
#include "tests/support/solution_bits.h"
#include "tests/support/transports.h"

namespace sap::client {
namespace {

using test::AnswerBits;
using test::Bits;

constexpr int kSteps = 200;

// The problems of a simulation, without guesses.
std::vector<Problem> ClutterSteps() {
  std::vector<Problem> problems;
  auto client = Client::Connect("embedded:", {.threads = 2});
  simulation::SceneOptions options;
  options.bodies = 40;
  options.walls = true;
  simulation::Simulation simulation(*simulation::MakeScene("clutter", options), 0.01,
                                    [&](const Problem& problem) {
                                      problems.push_back(problem);
                                      problems.back().bodies.guess_velocity.clear();
                                      return client->Solve(problem);
                                    });
  for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(simulation.Step().has_value());
  return problems;
}

std::vector<AnswerBits> OneByOne(Client* client, const std::vector<Problem>& problems) {
  std::vector<AnswerBits> answers;
  auto session = client->OpenSession();
  for (const Problem& problem : problems) {
    const auto solution = session->Step(problem);
    answers.push_back(solution ? Bits(*solution) : AnswerBits{solution.error().message});
  }
  EXPECT_TRUE(session->Close().has_value());
  return answers;
}

std::vector<AnswerBits> Ahead(Client* client, const std::vector<Problem>& problems) {
  std::vector<AnswerBits> answers;
  auto session = client->OpenSession();
  for (const Problem& problem : problems) EXPECT_TRUE(session->Send(problem).has_value());
  while (session->in_flight() > 0) {
    const auto outcome = session->Receive();
    if (!outcome.has_value()) break;
    EXPECT_EQ(outcome->warm_started, !answers.empty());
    answers.push_back(Bits(*outcome->solution));
  }
  return answers;
}

std::vector<AnswerBits> Unary(Client* client, const std::vector<Problem>& problems) {
  std::vector<AnswerBits> answers;
  std::vector<double> guess;
  for (Problem problem : problems) {
    problem.bodies.guess_velocity = guess;
    const auto solution = client->Solve(problem);
    if (!solution.has_value()) break;
    answers.push_back(Bits(*solution));
    guess = solution->velocity;
  }
  return answers;
}

class SessionBitsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    problems_ = new std::vector<Problem>(ClutterSteps());
    Client client = *Client::Connect("embedded:", {.threads = 1});
    expected_ = new std::vector<AnswerBits>(OneByOne(&client, *problems_));
  }
  static void TearDownTestSuite() {
    delete problems_;
    delete expected_;
  }

  static ServerConfig Config(int threads) {
    ServerConfig config;
    config.threads = threads;
    return config;
  }

  static std::vector<Problem>* problems_;
  static std::vector<AnswerBits>* expected_;
};

std::vector<Problem>* SessionBitsTest::problems_ = nullptr;
std::vector<AnswerBits>* SessionBitsTest::expected_ = nullptr;

TEST_F(SessionBitsTest, TheStepsAreWorthIt) {
  ASSERT_EQ(problems_->size(), static_cast<size_t>(kSteps));
  EXPECT_TRUE(problems_->front().body_contacts.body_a.empty());
  EXPECT_GT(problems_->back().body_contacts.body_a.size(), 80u);
}

TEST_F(SessionBitsTest, ForAnyNumberOfThreadsAndOverEveryTransport) {
  for (const int threads : {1, 2, 4}) {
    for (const char* transport : {"embedded:", "tcp:", "unix:"}) {
      const test::Server server(transport, Config(threads));
      Client client = server.Connect(threads);
      EXPECT_EQ(OneByOne(&client, *problems_), *expected_) << transport << threads;
      EXPECT_EQ(Ahead(&client, *problems_), *expected_) << transport << threads;
    }
  }
}

TEST_F(SessionBitsTest, InlineOrOnTheArena) {
  for (const double inline_below_us : {0.0, 1e6}) {
    ServerConfig config = Config(2);
    config.inline_below_us = inline_below_us;
    const test::Server server("unix:", config);
    Client client = server.Connect();
    EXPECT_EQ(Ahead(&client, *problems_), *expected_) << inline_below_us;
  }
}

TEST_F(SessionBitsTest, AsUnaryCallsWithTheSameGuesses) {
  const test::Server server("tcp:", Config(2));
  Client client = server.Connect();
  EXPECT_EQ(Unary(&client, *problems_), *expected_);
}

TEST_F(SessionBitsTest, SolvedAgainFromARecording) {
  const test::TemporaryDirectory directory;
  std::string path;
  {
    RequestRecorder recorder([](const std::string&) {});
    path = recorder.Begin({.directory = directory / ""}).value();
    const test::Server server("tcp:", Config(2), &recorder);
    Client client = server.Connect();
    EXPECT_EQ(Ahead(&client, *problems_), *expected_);
  }
  for (const char* transport : {"embedded:", "unix:"}) {
    const test::Server server(transport, Config(4));
    const auto report = server.Connect(/*threads=*/1).Replay(path);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->records, kSteps);
    EXPECT_EQ(report->identical, kSteps) << report->first_difference;
    EXPECT_TRUE(report->same_build);
    EXPECT_FALSE(report->truncated);
  }
}

}  // namespace
}  // namespace sap::client
