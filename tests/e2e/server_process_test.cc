// The server as its users meet it: the binary in another process, and clients on its socket.
#include "tests/e2e/server_process.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "client/cpp/problem_file.h"
#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/admin_service.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "tests/e2e/server_log.h"
#include "tests/support/generic_call.h"
#include "tests/support/problem_set.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"
#include "tests/support/unix_socket.h"

namespace sap::test {
namespace {

using client::Client;
using client::ErrorCode;
using client::Problem;
using client::Solution;
using client::SolveOptions;
using testing::HasSubstr;

Problem Small() { return *client::FromMessage(MixedProblem()); }

// About a minute of work for two cores unless it is stopped.
Problem Endless() { return SphereBlock(24); }

// A server that tells whether a call runs.
class BusyServer : private TemporaryDirectory, public ServerProcess {
 public:
  explicit BusyServer(const std::vector<std::string>& flags = {})
      : ServerProcess(WithMetrics(flags, *this / "log")),
        metrics_(AddressIn(*this / "log", "metrics")) {}

  // Whether the server comes to have a call, or none.
  bool Becomes(bool busy) const {
    const std::string held = std::string("\nsap_calls_held ") + (busy ? "1\n" : "0\n");
    return Await([&] { return HttpGet(metrics_, "/metrics").find(held) != std::string::npos; });
  }

 private:
  static std::vector<std::string> WithMetrics(std::vector<std::string> flags,
                                              const std::string& log) {
    flags.insert(flags.end(), {"--metrics-listen", "127.0.0.1:0", "--log-file", log});
    return flags;
  }

  const std::string metrics_;
};

TEST(ServerProcessTest, ServesUntilItIsTerminatedAndExitsCleanly) {
  ServerProcess server;
  Client client = server.Connect();
  EXPECT_TRUE(client.Health().value());
  const auto solution = client.Solve(Small());
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_TRUE(solution->Solved());
  server.Terminate();
  const ProcessResult result = server.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("done"));
  const auto after = client.Solve(Small());
  ASSERT_FALSE(after.has_value());
  EXPECT_EQ(after.error().code, ErrorCode::kUnavailable);
}

TEST(ServerProcessTest, BitsAreTheSameEmbeddedOverTcpAndOverAUnixSocket) {
  const TemporaryDirectory directory;
  const ServerProcess tcp;
  const ServerProcess unix_socket({"--listen", "unix:" + (directory / "socket").string(),
                                   "--threads", "3", "--inline-below-us", "0"});
  std::vector<Client> clients;
  clients.push_back(*Client::Connect("embedded:", {.threads = 1}));
  clients.push_back(*Client::Connect("embedded:", {.threads = 8}));
  clients.push_back(tcp.Connect());
  clients.push_back(unix_socket.Connect());
  for (const char* name : {"adroit_ball_t0p30", "clutter_bin_8_t2p00", "clutter_bin_40_t1p00",
                           "nasty_massratio_alternating_1e6", "heaps_300x3_t1p50"}) {
    const auto problem = client::LoadProblem(ProblemPath(name));
    ASSERT_TRUE(problem.has_value()) << problem.error().message;
    const auto expected = clients[0].Solve(*problem);
    ASSERT_TRUE(expected.has_value()) << expected.error().message;
    EXPECT_TRUE(expected->Solved()) << name;
    for (Client& client : clients) {
      const auto solution = client.Solve(*problem);
      ASSERT_TRUE(solution.has_value()) << solution.error().message;
      EXPECT_TRUE(solution->velocity == expected->velocity) << name;
      EXPECT_TRUE(solution->impulse == expected->impulse) << name;
      EXPECT_TRUE(solution->contact_velocity == expected->contact_velocity) << name;
      EXPECT_EQ(solution->cost, expected->cost) << name;
      EXPECT_TRUE(solution->island_of_tree == expected->island_of_tree) << name;
      for (size_t i = 0; i < expected->islands.size(); ++i) {
        EXPECT_EQ(solution->islands[i].iterations, expected->islands[i].iterations) << name;
        EXPECT_EQ(solution->islands[i].momentum_residual, expected->islands[i].momentum_residual)
            << name;
      }
    }
  }
}

TEST(ServerProcessTest, ASecondServerOnThePortFailsLoudly) {
  ServerProcess first;
  const ProcessResult second =
      RunProcess({SAP_SERVER_BINARY, "--listen", first.address()}, kPatience);
  EXPECT_GT(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("cannot listen on " + first.address()));
  EXPECT_EQ(second.out, "");
  EXPECT_TRUE(first.Connect().Health().value());
}

TEST(ServerProcessTest, ASecondServerOnTheUnixSocketFailsLoudly) {
  const TemporaryDirectory directory;
  const std::string address = "unix:" + (directory / "socket").string();
  ServerProcess first({"--listen", address});
  const ProcessResult second = RunProcess({SAP_SERVER_BINARY, "--listen", address}, kPatience);
  EXPECT_GT(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("another server"));
  EXPECT_TRUE(first.Connect().Health().value());
}

// Whether the admin service answers.
bool Administers(const std::string& address) {
  const auto stub =
      v1::AdminService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::SetLogLevelRequest request;
  request.set_level(v1::LOG_LEVEL_DEBUG);
  v1::SetLogLevelResponse response;
  return stub->SetLogLevel(&context, request, &response).ok();
}

TEST(ServerProcessTest, ASecondServerTakesNoAdminSocketOver) {
  const TemporaryDirectory directory;
  const std::string main = "unix:" + (directory / "socket").string();
  const std::string admin = "unix:" + (directory / "admin").string();
  const ServerProcess first({"--listen", main, "--admin-listen", admin});
  for (const std::string& listen : {main, std::string("127.0.0.1:0")}) {
    const ProcessResult second =
        RunProcess({SAP_SERVER_BINARY, "--listen", listen, "--admin-listen", admin}, kPatience);
    EXPECT_GT(second.exit_code, 0);
    EXPECT_THAT(second.err, HasSubstr("another server"));
    EXPECT_TRUE(Administers(admin));
    EXPECT_TRUE(first.Connect().Health().value());
  }
}

// Even one that does not answer: a stopped process still has its address.
TEST(ServerProcessTest, ASecondServerTakesNoSocketOfAStoppedServerOver) {
  const TemporaryDirectory directory;
  const std::string main = "unix:" + (directory / "socket").string();
  const ServerProcess first({"--listen", main});
  first.Signal(SIGSTOP);
  std::vector<std::unique_ptr<UnixSocket>> waiting;
  do {
    waiting.push_back(std::make_unique<UnixSocket>(directory / "socket"));
  } while (waiting.back()->connected());
  const ProcessResult second = RunProcess({SAP_SERVER_BINARY, "--listen", main}, kPatience);
  EXPECT_GT(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("another server"));
  waiting.clear();
  first.Signal(SIGCONT);
  EXPECT_TRUE(first.Connect().Health().value());
}

TEST(ServerProcessTest, AFailedStartRemovesNothingThatWasThere) {
  const TemporaryDirectory directory;
  const ServerProcess first;
  const std::filesystem::path file = directory / "file", left = directory / "left";
  std::ofstream(file) << "content";
  // A socket file that a killed server has left.
  { const ServerProcess killed({"--listen", "unix:" + left.string()}); }
  for (const std::filesystem::path& admin : {file, left}) {
    const ProcessResult second = RunProcess({SAP_SERVER_BINARY, "--listen", first.address(),
                                             "--admin-listen", "unix:" + admin.string()},
                                            kPatience);
    EXPECT_GT(second.exit_code, 0);
    EXPECT_TRUE(std::filesystem::exists(admin)) << admin;
  }
  EXPECT_EQ(std::filesystem::file_size(file), 7u);
}

// Who may connect to it may drain the server.
TEST(ServerProcessTest, TheAdminSocketIsItsOwnersAlone) {
  using std::filesystem::perms;
  const TemporaryDirectory directory;
  const ServerProcess server({"--admin-listen", "unix:" + (directory / "admin").string()},
                             {"/bin/sh", "-c", "umask 0; exec \"$0\" \"$@\""});
  EXPECT_EQ(std::filesystem::status(directory / "admin").permissions(), perms::owner_all);
}

// The socket file that a killed server leaves does not block its address.
TEST(ServerProcessTest, ASocketFileWithoutServerIsTakenOver) {
  const TemporaryDirectory directory;
  const std::string address = "unix:" + (directory / "socket").string();
  { const ServerProcess killed({"--listen", address}); }
  EXPECT_TRUE(std::filesystem::exists(directory / "socket"));
  const ServerProcess second({"--listen", address});
  EXPECT_TRUE(second.Connect().Health().value());
}

// In one line, with the reason.
TEST(ServerProcessTest, AnAddressThatNoServerCanHaveFailsLoudly) {
  for (const auto& [flag, address, reason] :
       {std::tuple("--listen", "192.0.2.1:0", "Cannot assign requested address"),
        std::tuple("--listen", "unix:/no/such/folder/socket", "No such file or directory"),
        std::tuple("--admin-listen", "unix:/no/such/folder/socket", "No such file or directory"),
        std::tuple("--metrics-listen", "192.0.2.1:0", "Cannot assign requested address")}) {
    std::vector<std::string> command{SAP_SERVER_BINARY, flag, address, "--insecure-listen"};
    if (flag != std::string_view("--listen"))
      command.insert(command.end(), {"--listen", "127.0.0.1:0"});
    const ProcessResult result = RunProcess(command, kPatience);
    EXPECT_GT(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("cannot listen on " + std::string(address) + ": " + reason));
  }
}

// They waited forever, and said nothing.
TEST(ServerProcessTest, ScriptsOfFiguresEndWhereTheirServerDoesNotStart) {
  for (const char* script : {"latency.sh", "overload.sh"}) {
    const ProcessResult result = RunProcess(
        {std::string(SAP_DEPLOY_DIRECTORY) + "/../tests/e2e/" + script, "/no/such/build"},
        kPatience);
    EXPECT_EQ(result.exit_code, 1) << script;
    EXPECT_THAT(result.err, HasSubstr("/no/such/build/bin/sap-server")) << script;
  }
}

// A client that asks for no number of iterations has those that the server allows.
TEST(ServerProcessTest, AServerOfFewIterationsServesDefaultOptions) {
  const ServerProcess server({"--max-iterations", "1"});
  Client client = server.Connect();
  const auto solution = client.Solve(Small());
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  for (const auto& island : solution->islands) EXPECT_LE(island.iterations, 1);
  SolveOptions asked;
  asked.solver.max_iterations = 2;
  EXPECT_EQ(client.Solve(Small(), asked).error().field, "options.max_iterations");
}

// The call gets as much of its answer as fits the budget, in full form.
TEST(ServerProcessTest, ATimeBudgetReturnsTheBestIterate) {
  const ServerProcess server;
  Client client = server.Connect();
  SolveOptions options;
  options.time_budget = std::chrono::milliseconds(200);
  const auto solution = client.Solve(Endless(), options);
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  ASSERT_EQ(solution->islands.size(), 1u);
  EXPECT_EQ(solution->islands[0].status, SolveStatus::kDeadline);
  EXPECT_GE(solution->islands[0].optimality_gap_bound, 0);
  EXPECT_EQ(solution->velocity.size(), 6u * 24 * 24 * 24);
  for (const double v : solution->velocity) ASSERT_TRUE(std::isfinite(v));
}

// At the deadline of a call there is either the best iterate, sent just before it, or nothing; in
// both cases the server is free again.
TEST(ServerProcessTest, ADeadlineStopsTheSolve) {
  const BusyServer server;
  Client client = server.Connect();
  SolveOptions options;
  options.deadline = std::chrono::milliseconds(500);
  const auto solution = client.Solve(Endless(), options);
  if (solution.has_value()) {
    EXPECT_EQ(solution->islands.at(0).status, SolveStatus::kDeadline);
  } else {
    EXPECT_EQ(solution.error().code, ErrorCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(server.Becomes(/*busy=*/false));
}

TEST(ServerProcessTest, ACancelledCallStopsTheSolve) {
  const BusyServer server;
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  v1::SolveRequest request;
  client::ToMessage(Endless(), request.mutable_problem());
  grpc::ClientContext context;
  auto call = std::async(std::launch::async, [&] {
    v1::SolveResponse response;
    return stub->Solve(&context, request, &response).error_code();
  });
  EXPECT_TRUE(server.Becomes(/*busy=*/true));
  context.TryCancel();
  EXPECT_EQ(call.get(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(server.Becomes(/*busy=*/false));
}

// A client that dies has cancelled its calls.
TEST(ServerProcessTest, AClientThatIsKilledStopsTheSolve) {
  const BusyServer server;
  const TemporaryDirectory directory;
  const std::string file = directory / "endless.binpb";
  ASSERT_TRUE(client::SaveProblem(Endless(), file).has_value());
  {
    const ChildProcess client({SAP_CLIENT_BINARY, "solve", file, "--server", server.address()});
    EXPECT_TRUE(server.Becomes(/*busy=*/true));
  }
  EXPECT_TRUE(server.Becomes(/*busy=*/false));
}

// The answer is a short one, since gRPC can cut a long one off (server/README.md, 9).
TEST(ServerProcessTest, TerminationFinishesTheCallThatRuns) {
  BusyServer server;
  auto call = std::async(std::launch::async, [&] {
    Client client = server.Connect();
    SolveOptions options;
    options.time_budget = std::chrono::seconds(5);
    options.response_mask = {"islands"};
    return client.Solve(Endless(), options);
  });
  Client other = server.Connect();
  EXPECT_TRUE(server.Becomes(/*busy=*/true));
  server.Terminate();
  // Until it is finished, others are told to go elsewhere.
  while (other.Health().value_or(false)) {
  }
  const auto refused = other.Solve(Small());
  ASSERT_FALSE(refused.has_value());
  // gRPC itself ends a call that crosses the GOAWAY, with CANCELLED.
  EXPECT_THAT(refused.error().code, testing::AnyOf(ErrorCode::kUnavailable, ErrorCode::kCancelled));
  const auto solution = call.get();
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  ASSERT_EQ(solution->islands.size(), 1u);
  EXPECT_EQ(solution->islands[0].status, SolveStatus::kDeadline);
  EXPECT_EQ(server.Wait().exit_code, 0);
}

// With no time to drain, what runs is cancelled, and the server still exits cleanly.
TEST(ServerProcessTest, TheDrainTimeoutCancelsWhatIsLeft) {
  BusyServer server({"--drain-timeout-s", "0.1", "--io-threads", "1"});
  auto call = std::async(std::launch::async, [&] { return server.Connect().Solve(Endless()); });
  EXPECT_TRUE(server.Becomes(/*busy=*/true));
  server.Terminate();
  EXPECT_FALSE(call.get().has_value());
  EXPECT_EQ(server.Wait().exit_code, 0);
}

// From three io threads on the server has several queues, and polls them by other means.
TEST(ServerProcessTest, SeveralIoThreadsServeSessionsOfManyConnectionsWithTheSameBits) {
  constexpr int kSteps = 20;
  ServerProcess server({"--io-threads", "5"});
  const auto velocities = [](Client client) -> std::vector<std::vector<double>> {
    std::vector<std::vector<double>> found;
    auto session = client.OpenSession();
    for (int i = 0; session && i < kSteps; ++i) {
      const auto solution = session->Step(Small());
      if (solution) found.push_back(solution->velocity);
    }
    return found;
  };
  const auto expected = velocities(*Client::Connect("embedded:"));
  ASSERT_EQ(expected.size(), kSteps);
  std::vector<std::future<std::vector<std::vector<double>>>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::async(std::launch::async, velocities, server.Connect()));
  }
  for (auto& client : clients) EXPECT_EQ(client.get(), expected);
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
}

TEST(ServerProcessTest, AMessageOverTheLimitIsRefusedAndTheServerLives) {
  const ServerProcess server({"--max-message-bytes", "20000"});
  Client client = server.Connect();
  const auto refused = client.Solve(SphereBlock(8));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  const auto solution = client.Solve(Small());
  ASSERT_TRUE(solution.has_value()) << solution.error().message;
  EXPECT_TRUE(solution->Solved());
}

TEST(ServerProcessTest, AMethodThatIsNotThereIsUnimplemented) {
  const ServerProcess server;
  const auto channel = grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials());
  EXPECT_EQ(CallByName(channel, "/sap.v1.SolverService/Guess", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_TRUE(server.Connect().Health().value());
}

TEST(ServerProcessTest, InfoTellsTheLimitsOfTheFlags) {
  const ServerProcess server({"--max-message-bytes", "20000", "--max-contacts", "77"});
  const auto info = server.Connect().Info();
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->max_message_bytes, 20000u);
  EXPECT_EQ(info->max_contacts, 77u);
  EXPECT_EQ(info->solver_threads, 2u);
}

}  // namespace
}  // namespace sap::test
