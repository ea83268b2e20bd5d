// Sessions and recordings between real processes: what is left when one of them dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <future>
#include <thread>

#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/server_log.h"
#include "tests/e2e/server_process.h"
#include "tests/support/problem_set.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"
#include "tests/support/transports.h"

namespace sap::test {
namespace {

using client::Client;
using client::ErrorCode;
using client::Problem;
using client::SolveOptions;
using testing::HasSubstr;

Problem Small(int step) {
  Problem problem = *client::FromMessage(MixedProblem());
  problem.trees.guess_velocity.clear();
  problem.bodies.guess_velocity.clear();
  problem.bodies.free_motion_velocity[2] -= 0.01 * step;
  return problem;
}

ProcessResult RunClient(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SAP_CLIENT_BINARY);
  return RunProcess(arguments, kPatience);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool Becomes(const RequestHandler& handler, int sessions) {
  return Await([&] { return handler.num_sessions() == sessions; });
}

// Killed in the middle of a step or between two: either way nothing is left of its session.
TEST(SessionProcessTest, AClientThatIsKilledLeavesNoSession) {
  ServerConfig config;
  config.threads = 2;
  Server server("tcp:", config);
  for (const char* bodies : {"4", "400"}) {
    {
      const ChildProcess simulation({SAP_CLIENT_BINARY, "simulate", "clutter", "--bodies", bodies,
                                     "--time", "1000", "--server", server.grpc()->address()});
      ASSERT_TRUE(Becomes(*server.handler(), 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      simulation.Signal(SIGKILL);
    }
    EXPECT_TRUE(Becomes(*server.handler(), 0));
  }
}

TEST(SessionProcessTest, TerminationAnswersTheStepAndEndsTheSession) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server({"--metrics-listen", "127.0.0.1:0", "--log-file", log.string()});
  auto client = Client::Connect(server.address(), {.reconnect_within = {}});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  SolveOptions options;
  options.time_budget = std::chrono::seconds(5);
  auto session = client->OpenSession(options);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  ASSERT_TRUE(session->Step(Small(0)).has_value());
  auto idle = client->OpenSession();
  ASSERT_TRUE(idle.has_value());
  ASSERT_TRUE(session->Send(SphereBlock(20)).has_value());
  const std::string metrics = AddressIn(log, "metrics");
  ASSERT_TRUE(Await([&] {
    return HttpGet(metrics, "/metrics").find("sap_arena_busy_fraction 0\n") == std::string::npos;
  }));
  server.Terminate();
  const auto outcome = session->Receive();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  ASSERT_TRUE(outcome->solution.has_value());
  // Within its time or at the end of it, by the speed of the machine.
  EXPECT_EQ(outcome->solution->islands.size(), 1u);
  for (client::Session* ended : {&*session, &*idle}) {
    const auto next = ended->Step(Small(1));
    ASSERT_FALSE(next.has_value());
    EXPECT_EQ(next.error().code, ErrorCode::kUnavailable);
  }
  EXPECT_EQ(server.Wait().exit_code, 0);
}

TEST(SessionProcessTest, ASessionOutlivesAServerThatIsKilled) {
  const TemporaryDirectory directory;
  const std::vector<std::string> flags = {"--listen", "unix:" + (directory / "socket").string()};
  auto server = std::make_unique<ServerProcess>(flags);
  auto client = Client::Connect(server->address(), {.reconnect_within = kPatience});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  auto session = client->OpenSession();
  ASSERT_TRUE(session.has_value());
  ASSERT_TRUE(session->Step(Small(0)).has_value());
  server.reset();  // by SIGKILL
  auto step = std::async(std::launch::async, [&] { return session->Step(Small(1)); });
  server = std::make_unique<ServerProcess>(flags);
  const auto solution = step.get();
  EXPECT_TRUE(solution.has_value()) << solution.error().message;
}

class RecordingProcessTest : public testing::Test {
 protected:
  std::string Directory(const std::string& name) const {
    std::filesystem::create_directory(directory_ / name);
    return directory_ / name;
  }
  // The only file in the directory.
  std::string Recording(const std::string& name) const {
    const auto files = std::filesystem::directory_iterator(directory_ / name);
    return begin(files)->path();
  }

  TemporaryDirectory directory_;
};

TEST_F(RecordingProcessTest, ASessionWithAServerIsReplayedElsewhere) {
  {
    ServerProcess server({"--record", Directory("all"), "--threads", "2"});
    Client client = server.Connect();
    auto session = client.OpenSession();
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(session->Step(Small(i)).has_value());
    ASSERT_TRUE(session->Close().has_value());
    Problem bad = Small(0);
    bad.time_step = -1;
    EXPECT_FALSE(client.Solve(bad).has_value());
    server.Terminate();
    const ProcessResult result = server.Wait();
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("recorded 31 solves"));
  }
  const ServerProcess other(
      {"--listen", "unix:" + (directory_ / "socket").string(), "--threads", "3"});
  const std::vector<std::vector<std::string>> places = {{"--threads", "1"},
                                                        {"--server", other.address()}};
  for (const auto& place : places) {
    std::vector<std::string> arguments = {"replay", Recording("all")};
    arguments.insert(arguments.end(), place.begin(), place.end());
    const ProcessResult result = RunClient(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.out, testing::ContainsRegex("saprec +31 +31 +0 +0\n"));
  }
}

// What is written before a crash can be replayed.
TEST_F(RecordingProcessTest, AServerThatIsKilledLeavesWhatItRecorded) {
  {
    const ServerProcess server({"--record", Directory("killed")});
    Client client = server.Connect();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.Solve(Small(i)).has_value());
    EXPECT_TRUE(Await([this] { return std::filesystem::file_size(Recording("killed")) > 0; }));
  }
  const auto report = Client::Connect("embedded:")->Replay(Recording("killed"));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_GE(report->identical, 1);
  EXPECT_EQ(report->different, 0);
}

TEST_F(RecordingProcessTest, TheRuleFailedKeepsOnlyWhatFailed) {
  {
    ServerProcess server({"--record", Directory("failed"), "--record-rule", "failed"});
    Client client = server.Connect();
    SolveOptions no_iterations;
    no_iterations.solver.max_iterations = 0;
    ASSERT_TRUE(client.Solve(Small(0)).has_value());
    ASSERT_TRUE(client.Solve(Small(0), no_iterations).has_value());
    server.Terminate();
    EXPECT_THAT(server.Wait().err, HasSubstr("recorded 1 solves"));
  }
  EXPECT_THAT(RunClient({"replay", Recording("failed")}).out,
              testing::ContainsRegex("saprec +1 +1 +0 +0\n"));
}

TEST_F(RecordingProcessTest, TheClientRecordsAndFindsWhatWasTamperedWith) {
  const std::string recording = directory_ / "some.saprec";
  const ProcessResult recorded =
      RunClient({"record", ProblemPath("clutter_bin_8_t2p00"), ProblemPath("nasty_no_contacts"),
                 "--newton", "plain", "--output", recording});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  EXPECT_EQ(recorded.out, "2 problems and answers in " + recording + "\n");
  EXPECT_EQ(RunClient({"replay", recording, recording}).exit_code, 0);

  // One bit of one velocity, found by its bytes.
  SolveOptions plain;
  plain.solver.newton = NewtonMethod::kPlain;
  const auto solution =
      Client::Connect("embedded:")
          ->Solve(*client::LoadProblem(ProblemPath("clutter_bin_8_t2p00")), plain);
  ASSERT_TRUE(solution.has_value());
  std::string bytes = ReadFile(recording);
  const std::string value(reinterpret_cast<const char*>(&solution->velocity[5]), sizeof(double));
  const size_t place = bytes.find(value);
  ASSERT_NE(place, std::string::npos);
  bytes[place] ^= 1;
  std::ofstream(recording, std::ios::binary) << bytes;
  const ProcessResult tampered = RunClient({"replay", recording});
  EXPECT_EQ(tampered.exit_code, 1);
  EXPECT_THAT(tampered.out, HasSubstr("first difference: record 1: velocity[5] is "));

  std::ofstream(recording, std::ios::binary) << bytes.substr(0, bytes.size() - 7);
  const ProcessResult cut = RunClient({"replay", recording});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.out, HasSubstr("the file ends within record 2"));
}

TEST_F(RecordingProcessTest, WhatCannotBeDoneIsRefused) {
  EXPECT_EQ(RunClient({"replay", directory_ / "missing"}).exit_code, 2);
  EXPECT_NE(RunClient({"replay"}).exit_code, 0);
  EXPECT_NE(RunClient({"record", ProblemPath("nasty_no_contacts")}).exit_code, 0);
  EXPECT_EQ(RunClient({"record", ProblemPath("nasty_no_contacts"), "--output",
                       directory_ / "no" / "such" / "file"})
                .exit_code,
            2);
  const ProcessResult server =
      RunProcess({SAP_SERVER_BINARY, "--listen", "127.0.0.1:0", "--record", "/dev/null/here"});
  EXPECT_EQ(server.exit_code, 2);
  EXPECT_THAT(server.err, HasSubstr("cannot record to /dev/null/here"));
}

}  // namespace
}  // namespace sap::test
