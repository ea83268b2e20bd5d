// The server as its operators meet it: draining, metrics, logs, admin calls.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/admin_service.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using client::Client;
using client::ErrorCode;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

client::Problem Small() { return *client::FromMessage(MixedProblem()); }

// The lines of a log, each an object of JSON.
std::vector<Json> ReadLog(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

// What follows "NAME on " in a message of the log, waited for.
std::string AddressIn(const std::filesystem::path& log, const std::string& what) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    for (const Json& line : ReadLog(log)) {
      const std::string message = line.value("message", "");
      if (message.starts_with(what + " on ")) return message.substr(what.size() + 4);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return "";
}

// Clients that look at what they are told lose no call when the server goes: neither those who call
// nor those who have a session.
TEST(OperationsTest, ATerminatedServerGoesWithoutAFailedCall) {
  ServerProcess server({"--lame-duck-s", "1"});
  std::atomic<int> answered{0}, failed{0};
  std::atomic<bool> warned{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      Client client = server.Connect();
      while (client.Health().value_or(false)) {
        client.Solve(Small()).has_value() ? ++answered : ++failed;
      }
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

// With what is needed to find the call, and without what nobody else may know.
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
