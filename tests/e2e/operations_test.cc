// The server as its operators meet it: draining, metrics, logs, admin calls.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/admin_service.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "tests/e2e/server_log.h"
#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"
#include "tests/support/solution_bits.h"

namespace sap::test {
namespace {

using client::Client;
using client::ErrorCode;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

client::Problem Small() { return *client::FromMessage(MixedProblem()); }

// When the server goes, a call is answered, refused because the server shuts down, or cancelled if
// its message was still on the way. A session whose client looks at what it is told loses no step.
TEST(OperationsTest, ATerminatedServerAnswersOrRefuses) {
  // Long enough for every session to take another step, also on a busy machine.
  ServerProcess server({"--lame-duck-s", "5"});
  std::atomic<int> answered{0}, failed{0};
  std::atomic<bool> warned{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      Client client = server.Connect();
      auto solution = client.Solve(Small());
      for (; solution.has_value(); solution = client.Solve(Small())) ++answered;
      EXPECT_THAT(solution.error().code,
                  testing::AnyOf(ErrorCode::kUnavailable, ErrorCode::kCancelled))
          << solution.error().message;
    });
    threads.emplace_back([&] {
      Client client = server.Connect();
      auto session = client.OpenSession();
      ASSERT_TRUE(session.has_value());
      while (!session->draining()) {
        session->Step(Small()).has_value() ? ++answered : ++failed;
      }
      warned = true;
      if (!session->Close()) ++failed;
    });
  }
  while (answered < 100) std::this_thread::yield();
  server.Terminate();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server.Wait().exit_code, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_TRUE(warned);
}

TEST(OperationsTest, MetricsAreServedWhereTheyWereAskedFor) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server({"--metrics-listen", "127.0.0.1:0", "--log-file", log.string()});
  Client client = server.Connect();
  ASSERT_TRUE(client.Solve(Small()).has_value());
  client::Problem bad = Small();
  bad.time_step = -1;
  ASSERT_FALSE(client.Solve(bad).has_value());
  const std::string text = HttpGet(AddressIn(log, "metrics"), "/metrics");
  const std::string solve =
      "grpc_type=\"unary\",grpc_service=\"sap.v1.SolverService\",grpc_method=\"Solve\"";
  EXPECT_THAT(text, HasSubstr("grpc_server_started_total{" + solve + "} 2\n"));
  EXPECT_THAT(text, HasSubstr("grpc_server_handled_total{" + solve + ",grpc_code=\"OK\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("grpc_code=\"InvalidArgument\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("sap_build_info{version="));
}

// In problem i stack i is pushed, and the other 11 are those of all.
TEST(OperationsTest, FuturesOfASceneAreSolvedOnceWhereTheyAreEqual) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server(
      {"--metrics-listen", "127.0.0.1:0", "--log-file", log.string(), "--threads", "1"});
  Client client = server.Connect();
  std::vector<client::Problem> futures(8, Stacks(12, 6));
  for (size_t i = 0; i < futures.size(); ++i) {
    futures[i].bodies.free_motion_velocity[36 * i + 1] += 0.1;
  }
  std::vector<AnswerBits> expected;
  for (const client::Problem& future : futures) expected.push_back(Bits(*client.Solve(future)));
  const auto outcomes = client.SolveBatch(futures);
  ASSERT_EQ(outcomes.size(), futures.size());
  for (size_t i = 0; i < futures.size(); ++i) EXPECT_EQ(Bits(*outcomes[i]), expected[i]);
  const std::string text = HttpGet(AddressIn(log, "metrics"), "/metrics");
  EXPECT_THAT(text, HasSubstr("sap_islands_shared_total 76\n"));  // 7 x 11, less stack 0 once
}

// The first line of the answer to a request without a body.
std::string StatusOf(const std::string& address, const std::string& request) {
  const RawSocket socket(address);
  if (!socket.connected()) return "not connected";
  socket.Send(request + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string answer = socket.ReadAll(300'000);
  return answer.substr(0, answer.find("\r\n"));
}

TEST(OperationsTest, ProbesTellThatTheServerLivesAndIsReady) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const ServerProcess server({"--metrics-listen", "127.0.0.1:0", "--log-file", log.string()});
  const std::string address = AddressIn(log, "metrics");
  EXPECT_EQ(StatusOf(address, "GET /live"), "HTTP/1.1 200 OK");
  EXPECT_EQ(StatusOf(address, "GET /ready"), "HTTP/1.1 200 OK");
  EXPECT_EQ(StatusOf(address, "GET /metrics"), "HTTP/1.1 200 OK");
  EXPECT_EQ(StatusOf(address, "GET /"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(StatusOf(address, "POST /ready"), "HTTP/1.1 405 Method Not Allowed");
}

// A balancer takes the server out while it still serves.
TEST(OperationsTest, AServerThatAnnouncesItsShutdownLivesAndIsNotReady) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const ServerProcess server(
      {"--metrics-listen", "127.0.0.1:0", "--log-file", log.string(), "--lame-duck-s", "600"});
  const std::string address = AddressIn(log, "metrics");
  ASSERT_EQ(StatusOf(address, "GET /ready"), "HTTP/1.1 200 OK");
  server.Terminate();
  EXPECT_TRUE(
      Await([&] { return StatusOf(address, "GET /ready") == "HTTP/1.1 503 Service Unavailable"; }));
  EXPECT_EQ(StatusOf(address, "GET /live"), "HTTP/1.1 200 OK");
  EXPECT_TRUE(server.Connect().Solve(Small()).has_value());
}

TEST(OperationsTest, SilentConnectionsStopNeitherScrapesNorProbes) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const ServerProcess server({"--metrics-listen", "127.0.0.1:0", "--log-file", log.string()});
  const std::string address = AddressIn(log, "metrics");
  std::vector<std::unique_ptr<RawSocket>> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(std::make_unique<RawSocket>(address));
  silent.front()->Send("GET /metr");
  EXPECT_THAT(HttpGet(address, "/metrics"), HasSubstr("sap_build_info{version="));
  EXPECT_EQ(StatusOf(address, "GET /ready"), "HTTP/1.1 200 OK");
}

// The line identifies the call and contains no secret.
TEST(OperationsTest, AFailedCallIsLoggedWithItsRequestIdAndWithoutItsToken) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const std::string token = "a-secret-0123456789";
  std::ofstream(directory / "tokens") << "alice " << token << "\n";
  ServerProcess server(
      {"--log-file", log.string(), "--token-file", (directory / "tokens").string()});
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + token);
  context.AddMetadata("x-request-id", "r-17");
  context.AddMetadata("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  v1::SolveResponse response;
  EXPECT_FALSE(stub->Solve(&context, {}, &response).ok());
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
  int found = 0;
  for (const Json& line : ReadLog(log)) {
    EXPECT_THAT(line.dump(), Not(HasSubstr(token)));
    if (line.value("request_id", "") != "r-17") continue;
    ++found;
    EXPECT_EQ(line["method"], "Solve");
    EXPECT_EQ(line["code"], "InvalidArgument");
    EXPECT_EQ(line["client"], "token:alice");
    EXPECT_EQ(line["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  }
  EXPECT_EQ(found, 1);
}

// The trailing metadata x-request-id of a call, or an empty string.
std::string RequestIdIn(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find("x-request-id");
  return found == trailers.end() ? "" : std::string(found->second.data(), found->second.size());
}

// A client can report the failure, and the operator finds its line.
TEST(OperationsTest, AFailedCallReturnsTheRequestIdOfItsLogLine) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const ServerProcess server({"--log-file", log.string(), "--max-batch-problems", "1"});
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  const auto solve = [&stub](const std::string& given) {
    grpc::ClientContext context;
    if (!given.empty()) context.AddMetadata("x-request-id", given);
    v1::SolveResponse response;
    EXPECT_FALSE(stub->Solve(&context, {}, &response).ok());
    return RequestIdIn(context);
  };
  const auto stream = [&stub] {
    grpc::ClientContext context;
    v1::StreamBatchRequest request;
    request.add_problems();
    request.add_problems();
    const auto call = stub->StreamBatch(&context, request);
    EXPECT_FALSE(call->Finish().ok());
    return RequestIdIn(context);
  };
  const auto session = [&stub] {
    grpc::ClientContext context;
    const auto call = stub->SolveSession(&context);
    call->Write({});
    call->WritesDone();
    EXPECT_FALSE(call->Finish().ok());
    return RequestIdIn(context);
  };
  EXPECT_EQ(solve("r-17"), "r-17");
  const std::vector<std::string> ids{solve(""), solve(""), stream(), session()};
  std::set<std::string> different;
  for (const std::string& id : ids) {
    EXPECT_EQ(id.size(), 32u) << id;
    different.insert(id);
    EXPECT_TRUE(Await([&] {
      return std::ranges::count_if(ReadLog(log), [&](const Json& line) {
               return line.value("request_id", "") == id;
             }) == 1;
    })) << id;
  }
  EXPECT_EQ(different.size(), ids.size());
}

// It would cost every call; a client that wants to find its calls gives them ids.
TEST(OperationsTest, ACallThatSucceedsReturnsNoRequestId) {
  const ServerProcess server;
  const auto stub = v1::SolverService::NewStub(
      grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "r-17");
  v1::GetServerInfoResponse response;
  EXPECT_TRUE(stub->GetServerInfo(&context, {}, &response).ok());
  EXPECT_EQ(RequestIdIn(context), "");
}

// Errors of unary calls, batches and sessions alike.
TEST(OperationsTest, ErrorsOfTheClientHaveTheRequestId) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "tokens") << "alice a-token-0123456789\n";
  const ServerProcess server({"--token-file", (directory / "tokens").string()});
  Client stranger = server.Connect();
  const auto problem = Small();
  const auto solution = stranger.Solve(problem);
  const auto batch = stranger.SolveBatch({&problem, 1});
  const auto session = stranger.OpenSession();
  const auto info = stranger.Info();
  ASSERT_FALSE(solution.has_value() || batch[0].has_value() || session.has_value() ||
               info.has_value());
  std::set<std::string> different;
  for (const client::Error& error :
       {solution.error(), batch[0].error(), session.error(), info.error()}) {
    EXPECT_EQ(error.request_id.size(), 32u);
    different.insert(error.request_id);
  }
  EXPECT_EQ(different.size(), 4u);
  const ProcessResult command =
      RunProcess({SAP_CLIENT_BINARY, "info", "--server", server.address()});
  EXPECT_NE(command.exit_code, 0);
  EXPECT_THAT(command.err, testing::ContainsRegex("\\(request id [0-9a-f]{32}\\)"));
}

// The time of day of a line of the log, "2026-01-31T23:59:59.123456Z", in seconds.
double TimeOf(const Json& line) {
  std::tm utc{};
  strptime(line.value("time", "").c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  return static_cast<double>(timegm(&utc));
}

// The time of day steps by an hour and back: deadlines and sessions go by a clock that does not.
TEST(OperationsTest, AClockThatStepsCostsNothing) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const auto set = [&](const char* offset) {
    std::ofstream(directory / "next") << offset << "\n";
    std::filesystem::rename(directory / "next", directory / "time");
  };
  set("+0");
  ServerProcess server(
      {"--log-file", log.string(), "--log-level", "debug"},
      {"/usr/bin/env", "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
       "FAKETIME_TIMESTAMP_FILE=" + (directory / "time").string(), "FAKETIME_NO_CACHE=1",
       "FAKETIME_DONT_FAKE_MONOTONIC=1"});
  Client client = server.Connect();
  auto session = client.OpenSession();
  ASSERT_TRUE(session.has_value());
  for (const char* offset : {"+0", "+1h", "-1h", "+0"}) {
    set(offset);
    for (int i = 0; i < 20; ++i) {
      const auto solution = session->Step(Small());
      ASSERT_TRUE(solution.has_value()) << offset << ": " << solution.error().message;
    }
    EXPECT_TRUE(client.Solve(Small()).has_value()) << offset;
  }
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
  // The server has seen the steps.
  double earliest = std::numeric_limits<double>::infinity();
  double latest = 0;
  for (const Json& line : ReadLog(log)) {
    earliest = std::min(earliest, TimeOf(line));
    latest = std::max(latest, TimeOf(line));
  }
  EXPECT_GE(latest - earliest, 2 * 3600);
}

// Whoever stops it twice does not want to wait for the end of the drain.
TEST(OperationsTest, ASecondSignalEndsTheLameDuckPeriod) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  for (const int second : {SIGTERM, SIGINT}) {
    ServerProcess server({"--lame-duck-s", "600", "--log-file", log.string()});
    server.Terminate();
    ASSERT_TRUE(AwaitMessage(log, "lame duck"));
    server.Signal(second);
    EXPECT_EQ(server.Wait().exit_code, 128 + second);
    std::filesystem::remove(log);
  }
}

TEST(OperationsTest, ASecondSignalEndsTheDrain) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server(
      {"--drain-timeout-s", "600", "--log-file", log.string(), "--metrics-listen", "127.0.0.1:0"});
  std::thread call(
      [&server] { EXPECT_FALSE(server.Connect().Solve(SphereBlock(24)).has_value()); });
  const std::string metrics = AddressIn(log, "metrics");
  EXPECT_TRUE(Await([&] {
    return HttpGet(metrics, "/metrics").find("\nsap_calls_held 1\n") != std::string::npos;
  }));
  server.Terminate();
  EXPECT_TRUE(AwaitMessage(log, "draining in-flight calls"));
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 128 + SIGTERM);
  call.join();
}

// As logrotate does: the file gets another name, then the server a hang-up.
TEST(OperationsTest, AHangUpReopensTheLogFile) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server({"--log-file", log.string(), "--log-level", "debug"});
  Client client = server.Connect();
  ASSERT_TRUE(client.Info().has_value());
  std::filesystem::rename(log, directory / "log.1");
  server.Signal(SIGHUP);
  ASSERT_TRUE(AwaitMessage(log, "log file reopened"));
  const auto lines_before = ReadLog(directory / "log.1").size();
  ASSERT_TRUE(client.Solve(Small()).has_value());
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
  EXPECT_EQ(ReadLog(directory / "log.1").size(), lines_before);
  EXPECT_TRUE(std::ranges::any_of(
      ReadLog(log), [](const Json& line) { return line.value("method", "") == "Solve"; }));
}

// A terminal that closes, or a reload of a unit that logs to the journal.
TEST(OperationsTest, AHangUpWithoutALogFileIsHarmless) {
  ServerProcess server;
  for (int i = 0; i < 3; ++i) server.Signal(SIGHUP);
  EXPECT_TRUE(server.Connect().Solve(Small()).has_value());
  server.Terminate();
  EXPECT_EQ(server.Wait().exit_code, 0);
}

// Operators may say it twice: only signals end the server at once.
TEST(OperationsTest, ADrainThatIsRequestedTwiceIsOneDrain) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server(
      {"--log-file", log.string(), "--admin-listen", "127.0.0.1:0", "--lame-duck-s", "600"});
  const auto stub = v1::AdminService::NewStub(
      grpc::CreateChannel(AddressIn(log, "admin service"), grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    v1::DrainResponse response;
    EXPECT_TRUE(stub->Drain(&context, {}, &response).ok());
  }
  ASSERT_TRUE(AwaitMessage(log, "lame duck"));
  EXPECT_TRUE(server.Connect().Solve(Small()).has_value());
}

TEST(OperationsTest, AnOperatorDrainsTheServer) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server({"--log-file", log.string(), "--admin-listen", "127.0.0.1:0"});
  const auto stub = v1::AdminService::NewStub(
      grpc::CreateChannel(AddressIn(log, "admin service"), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::DrainResponse response;
  EXPECT_TRUE(stub->Drain(&context, {}, &response).ok());
  EXPECT_EQ(server.Wait().exit_code, 0);
}

}  // namespace
}  // namespace sap::test
