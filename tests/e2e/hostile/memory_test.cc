// Memory of the server: what a call takes is what admission counts; what sessions keep is counted,
// bounded, and returned to the system when they are gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/transport/message_conversion.h"
#include "solver/engine/solve_memory.h"
#include "tests/e2e/hostile/attacked_server.h"
#include "tests/e2e/hostile/attacks.h"
#include "tests/e2e/hostile/requests.h"
#include "tests/support/await.h"
#include "tests/support/memory_scenes.h"
#include "tests/support/raw_socket.h"

namespace sap::test::hostile {
namespace {

constexpr double kMiB = 1 << 20;
// Memory that the server takes with a first call, and that the allocator rounds up.
constexpr double kSlack_MB = 40;

double Metric(const AttackedServer& server, const std::string& name) {
  const std::string text = HttpGet(server.As("").metrics_address, "/metrics");
  const size_t place = text.find("\n" + name + " ");
  EXPECT_NE(place, std::string::npos) << name;
  return place == std::string::npos ? 0 : std::stod(text.substr(place + name.size() + 2));
}

double MessageBytes(const client::Problem& problem) {
  v1::SolveRequest request;
  client::ToMessage(problem, request.mutable_problem());
  return static_cast<double>(request.ByteSizeLong());
}

// Sweeps take no factors, which have a limit of their own.
client::SolveOptions FewSweeps() {
  client::SolveOptions options;
  options.solver.newton = NewtonMethod::kGaussSeidel;
  options.solver.max_iterations = 1;
  return options;
}

TEST(MemoryTest, ACallTakesAtMostWhatAdmissionCounts) {
  for (const MemoryScene& scene : MemoryScenes(IsFullProof() ? 16 : 4)) {
    const AttackedServer server({}, Front::kNone);
    client::Client client = server.Connect("neighbour");
    ASSERT_TRUE(client.Solve(SmallProblem()).has_value());
    const double wire_MB = MessageBytes(scene.problem) / kMiB;
    const double counted_MB =
        wire_MB + static_cast<double>(BytesOfSolve(scene.problem.View())) / kMiB;
    const double before_MB = server.Memory_MB();
    server.ForgetPeak();
    const auto solution = client.Solve(scene.problem, FewSweeps());
    ASSERT_TRUE(solution.has_value()) << scene.name << ": " << solution.error().message;
    const double peak_MB = server.PeakMemory_MB() - before_MB;
    std::printf("| %-28s | %8.1f | %8.1f | %8.1f | %8.1f |\n", scene.name.c_str(), wire_MB, peak_MB,
                peak_MB / wire_MB, counted_MB / wire_MB);
    EXPECT_LE(peak_MB, counted_MB + kSlack_MB) << scene.name;
  }
}

// Each row a body: some 60 times what a step takes on the wire is kept without a bound.
client::Problem LargeStep(int bodies) {
  client::Problem problem = LargeProblem(static_cast<size_t>(bodies) * 128);
  for (uint32_t i = 0; i < problem.bodies.mass.size(); ++i) {
    problem.rows.entries.push_back(1);
    problem.rows.velocity_index.push_back(6 * i);
    problem.rows.coefficient.push_back(1);
  }
  return problem;
}

TEST(MemoryTest, WhatSessionsKeepIsCountedBoundedAndReturned) {
  constexpr int kSessions = 4;
  constexpr double kMost_MB = 200;
  const AttackedServer server({"--max-client-bytes", "200000000"}, Front::kNone);
  client::Client client = server.Connect("neighbour");
  ASSERT_TRUE(client.Solve(SmallProblem()).has_value());
  const double fresh_MB = server.Memory_MB();
  constexpr int kSmall = 600;  // too few for shards, of which no session keeps the whole layout
  const client::Problem small = LargeStep(kSmall);
  const client::Problem large = LargeStep(60'000);
  {
    std::vector<client::Session> sessions;
    for (int i = 0; i < kSessions; ++i) {
      auto session = client.OpenSession(FewSweeps());
      ASSERT_TRUE(session.has_value());
      ASSERT_TRUE(session->Step(small).has_value());
      sessions.push_back(std::move(*session));
    }
    // What is small is kept, and counted.
    EXPECT_GT(Metric(server, "sap_session_bytes"), kSessions * kSmall * 1000.0);
    for (client::Session& session : sessions) {
      for (int k = 0; k < 2; ++k) {
        const auto step = session.Step(large);
        ASSERT_TRUE(step.has_value()) << step.error().message;
      }
    }
    EXPECT_LE(Metric(server, "sap_session_bytes"), kMost_MB * kMiB);
    EXPECT_TRUE(Await([&] { return server.Memory_MB() < fresh_MB + 2 * kMost_MB; }))
        << server.Memory_MB();
  }
  EXPECT_TRUE(Await([&] { return Metric(server, "sap_session_bytes") == 0; }));
  EXPECT_TRUE(Await([&] { return server.Memory_MB() < fresh_MB + kMost_MB; }))
      << server.Memory_MB() << " MB after " << fresh_MB;
}

// A session whose velocities do not fit any more is told so, before it solves.
TEST(MemoryTest, AStepWhoseVelocitiesDoNotFitIsRefused) {
  const AttackedServer server({"--max-client-bytes", "4000000"}, Front::kNone);
  client::Client client = server.Connect("neighbour");
  auto session = client.OpenSession(FewSweeps());
  ASSERT_TRUE(session.has_value());
  const auto step = session->Step(LargeStep(60'000));
  ASSERT_FALSE(step.has_value());
  EXPECT_EQ(step.error().reason, "CLIENT_BYTES");
  EXPECT_TRUE(session->Step(LargeStep(1000)).has_value());
}

// Contacts between other bodies at each step, as those of any scene that moves.
client::Problem MovingStep(int step) {
  constexpr int kBodies = 100;
  std::mt19937 random(step);
  client::ProblemBuilder builder(/*time_step=*/0.01);
  std::vector<client::Member> bodies;
  for (int i = 0; i < kBodies; ++i) {
    bodies.push_back(builder.AddBody({.mass = 1,
                                      .inertia = {0.1, 0.1, 0.1, 0, 0, 0},
                                      .free_motion_velocity = {0, 0, -0.1, 0, 0, 0}}));
  }
  for (int i = 0; i < kBodies * 3 / 2; ++i) {
    const size_t a = random() % kBodies;
    const size_t b = (a + 1 + random() % (kBodies - 1)) % kBodies;
    builder.AddBodyContact(bodies[a], bodies[b], /*point=*/{0.1, 0, 0}, /*normal=*/{0, 0, 1},
                           {.stiffness = 1e5, .friction = 0.5});
  }
  return builder.Build();
}

// What the account leaves out would be resident.
TEST(MemoryTest, SessionsWhoseContactsMoveTakeWhatIsCounted) {
  constexpr int kSessions = 6;
  constexpr int kSteps = 400;
  const AttackedServer server({}, Front::kNone);
  client::Client client = server.Connect("neighbour");
  const auto run = [&] {
    auto session = client.OpenSession();
    EXPECT_TRUE(session.has_value());
    for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(session->Step(MovingStep(i)).has_value());
    return std::move(*session);
  };
  run();
  ASSERT_TRUE(Await([&] { return Metric(server, "sap_session_bytes") == 0; }));
  const double fresh_MB = server.Memory_MB();
  std::vector<client::Session> sessions;
  for (int i = 0; i < kSessions; ++i) sessions.push_back(run());
  double counted_MB = 0;
  EXPECT_TRUE(Await([&] {
    counted_MB = Metric(server, "sap_session_bytes") / kMiB;
    return counted_MB > kSessions;
  }));
  // The heap of one session was free before, and stays partly so.
  EXPECT_LE(server.Memory_MB() - fresh_MB, 1.2 * counted_MB + 10);
}

// Whatever it is that takes the memory.
TEST(MemoryTest, NearTheLimitNewCallsAreRefusedUntilThereIsRoomAgain) {
  const AttackedServer server({"--memory-limit-bytes", "200000000"}, Front::kNone);
  client::Client client = server.Connect("neighbour");
  ASSERT_TRUE(client.Solve(SmallProblem()).has_value());
  // What an open session keeps is given back at its next step, whatever becomes of the memory.
  const client::Problem large = LargeStep(10'000);
  std::vector<client::Session> sessions;
  client::Error error;
  ASSERT_TRUE(Await([&] {
    if (auto session = client.OpenSession(FewSweeps()); session && session->Step(large)) {
      sessions.push_back(std::move(*session));
    }
    const auto solved = client.Solve(SmallProblem());
    if (!solved) error = solved.error();
    return !solved.has_value();
  }));
  EXPECT_EQ(error.reason, "SERVER_MEMORY");
  EXPECT_GT(error.retry_after.count(), 0);
  EXPECT_TRUE(Await([&] { return Metric(server, "sap_short_of_memory") == 1; }));
  for (client::Session& session : sessions) {
    EXPECT_TRUE(session.Step(LargeStep(1000)).has_value()) << "open sessions go on";
  }
  EXPECT_TRUE(Await([&] { return Metric(server, "sap_short_of_memory") == 0; }))
      << server.Memory_MB() << " MB";
  EXPECT_TRUE(client.Solve(SmallProblem()).has_value());
}

}  // namespace
}  // namespace sap::test::hostile
