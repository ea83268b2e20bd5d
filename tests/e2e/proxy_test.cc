// Debian's HAProxy in front of the server, with the configuration that ships: TLS outside, a Unix
// socket inside, and calls, sessions and refusals as without it.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/ledger.h"
#include "tests/e2e/proxy_process.h"
#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/certificates.h"
#include "tests/support/generic_call.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using client::Client;
using client::ErrorCode;

// With fewer descriptors than the floods below would take from the server without the proxy.
class ProxyTest : public testing::Test {
 protected:
  ProxyTest()
      : authority_(directory_ / "", "authority"),
        server_({"--listen", "unix:" + (directory_ / "socket").string(), "--token-file", Tokens()},
                {"/usr/bin/prlimit", "--nofile=64"}),
        proxy_(directory_ / "", authority_, directory_ / "socket") {}

  std::string Tokens() const {
    std::ofstream(directory_ / "tokens") << "alice a-token-0123456789\n";
    std::ofstream(directory_ / "token") << "a-token-0123456789\n";
    return (directory_ / "tokens").string();
  }

  client::ConnectOptions Options() const {
    client::ConnectOptions options;
    options.connect_timeout = kPatience;
    options.credentials.server_ca = authority_.certificate();
    options.credentials.token_file = (directory_ / "token").string();
    return options;
  }

  std::shared_ptr<grpc::ChannelCredentials> Credentials() const {
    grpc::SslCredentialsOptions options;
    std::stringstream authority;
    authority << std::ifstream(authority_.certificate()).rdbuf();
    options.pem_root_certs = authority.str();
    return grpc::SslCredentials(options);
  }

  TemporaryDirectory directory_;
  CertificateAuthority authority_;
  ServerProcess server_;
  ProxyProcess proxy_;
};

TEST_F(ProxyTest, CallsAndSessionsGoThroughWithTheSameBits) {
  auto client = Client::Connect(proxy_.address(), Options());
  ASSERT_TRUE(client.has_value()) << client.error().message;
  EXPECT_TRUE(client->Health().value_or(false));
  EXPECT_TRUE(client->Info().has_value());
  const client::Problem problem = *client::FromMessage(MixedProblem());
  EXPECT_TRUE(client->Solve(problem).has_value());
  EXPECT_TRUE(client->Solve(SphereBlock(8)).has_value());  // larger than a buffer of the proxy
  EXPECT_TRUE(client->SolveBatch({&problem, 1})[0].has_value());
  for (const Language language : Languages()) {
    const auto tested = Connect(language, proxy_.address(), Options());
    ASSERT_TRUE(tested.has_value()) << tested.error().message;
    const Ledger ledger =
        DriveSession(tested->get(), 1, {.more = [](int sent) { return sent < 200; }});
    EXPECT_EQ(ledger.answered, 200);
    EXPECT_EQ(ledger.solved, 200 - 200 / 97);
    EXPECT_THAT(ledger.violations, testing::IsEmpty());
  }

  client::Problem bad = problem;
  bad.time_step = -1;
  const auto refused = client->Solve(bad);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "time_step");
  client::ConnectOptions stranger = Options();
  stranger.credentials.token_file.clear();
  const auto unknown = Client::Connect(proxy_.address(), stranger)->Solve(problem);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnauthenticated);
}

// Other services than those for clients are not there, whatever the server answers.
TEST_F(ProxyTest, OtherPathsEndAtTheProxy) {
  const auto channel = grpc::CreateChannel(proxy_.address(), Credentials());
  const grpc::Status status = CallByName(channel, "/sap.v1.AdminService/Drain", "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), testing::HasSubstr("404"));
}

// What clients for Go and Java need, and the one for C does not: it is looked at on the wire.
TEST_F(ProxyTest, ItsRefusalIsAWholeAnswerOfGrpc) {
  const ProcessResult answer = RunProcess(
      {"/usr/bin/curl", "--silent", "--show-error", "--insecure", "--http2", "--dump-header", "-",
       "--request", "POST", "--header", "content-type: application/grpc",
       "https://" + proxy_.address() + "/sap.v1.SolverService/Solve"},
      kPatience);
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_THAT(answer.out, testing::StartsWith("HTTP/2 200 \r\n"));
  for (const char* header : {"\r\ncontent-type: application/grpc\r\n", "\r\ngrpc-status: 16\r\n",
                             "\r\ngrpc-message: a valid bearer token is required\r\n"}) {
    EXPECT_THAT(answer.out, testing::HasSubstr(header));
  }
}

// With every set of variables that its head names.
TEST(ProxyConfigurationTest, HasNoWarnings) {
  const TemporaryDirectory directory;
  const CertificateAuthority authority(directory / "", "authority");
  WritePem(authority.Issue("proxy"), directory / "proxy.pem");
  const std::string several = "SAP_SERVER_2=127.0.0.1:2";
  for (const std::vector<std::string>& variables :
       {std::vector<std::string>(), std::vector<std::string>{"SAP_WITHOUT_TOKENS=1"},
        std::vector<std::string>{several},
        std::vector<std::string>{several, "SAP_SERVER_3=127.0.0.1:3",
                                 "SAP_SERVER_CA=" + authority.certificate(),
                                 "SAP_SERVER_NAME=solver.example"}}) {
    std::vector<std::string> command{"/usr/bin/env", "SAP_BIND=127.0.0.1:1",
                                     "SAP_CERT=" + (directory / "proxy.pem").string(),
                                     "SAP_SERVER=127.0.0.1:1"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.insert(command.end(), {"/usr/sbin/haproxy", "-c", "-f", SAP_PROXY_CONFIGURATION});
    const ProcessResult checked = RunProcess(command, kPatience);
    EXPECT_EQ(checked.exit_code, 0);
    EXPECT_EQ(checked.err, "");
  }
}

// The server is not asked.
TEST_F(ProxyTest, CallsWithoutATokenEndAtTheProxy) {
  const auto channel = grpc::CreateChannel(proxy_.address(), Credentials());
  for (const std::string method : {"Solve", "SolveSession", "GetServerInfo"}) {
    const grpc::Status status = CallByName(channel, "/sap.v1.SolverService/" + method, "");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(status.error_message(), testing::HasSubstr("bearer token"));
  }
  EXPECT_TRUE(CallByName(channel, "/grpc.health.v1.Health/Check", "").ok());
}

// A robot cell behind one address has many sessions, on a few connections.
TEST_F(ProxyTest, SessionsOfOneAddressAreNotCountedAsConnections) {
  std::vector<Client> clients;
  std::vector<client::Session> sessions;
  for (int i = 0; i < 3; ++i) {
    auto client = Client::Connect(proxy_.address(), Options());
    ASSERT_TRUE(client.has_value()) << client.error().message;
    clients.push_back(std::move(*client));
    for (int k = 0; k < 75; ++k) {
      auto session = clients.back().OpenSession();
      ASSERT_TRUE(session.has_value()) << 75 * i + k << ": " << session.error().message;
      sessions.push_back(std::move(*session));
    }
  }
  EXPECT_TRUE(sessions.back().Step(*client::FromMessage(MixedProblem())).has_value());
}

// Connections that send nothing, too: they are counted before TLS. Other addresses are served
// meanwhile.
TEST_F(ProxyTest, ConnectionsOfOneAddressAreLimited) {
  constexpr int kLimit = 200, kTried = 260;
  std::vector<std::unique_ptr<RawSocket>> flood;
  for (int i = 0; i < kTried; ++i) {
    flood.push_back(std::make_unique<RawSocket>(proxy_.address(), "127.0.0.2"));
  }
  const auto refused = [&flood] {
    return std::ranges::count_if(
        flood, [](const auto& socket) { return !socket->connected() || socket->ClosedWithin(1); });
  };
  EXPECT_TRUE(Await([&] { return refused() >= kTried - kLimit; }));
  EXPECT_EQ(refused(), kTried - kLimit);
  auto client = Client::Connect(proxy_.address(), Options());
  ASSERT_TRUE(client.has_value()) << client.error().message;
  EXPECT_TRUE(client->Solve(*client::FromMessage(MixedProblem())).has_value());
  // The address is served again once its connections are closed.
  flood.clear();
  EXPECT_TRUE(Await([&] {
    const RawSocket next(proxy_.address(), "127.0.0.2");
    return next.connected() && !next.ClosedWithin(50);
  }));
}

// A call whose message does not come holds a stream of the server, but not for long.
TEST_F(ProxyTest, ACallWithoutItsMessageEndsAtTheProxy) {
  const auto channel = grpc::CreateChannel(proxy_.address(), Credentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer a-token-that-nobody-has");
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/sap.v1.SolverService/Solve", &queue);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
  };
  call->StartCall(nullptr);
  next();
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  EXPECT_THAT(status.error_message(), testing::HasSubstr("408")) << status.error_code();
}

// What does not speak TLS, or not HTTP/2, gets nowhere, and the next client is served.
TEST_F(ProxyTest, HostilePeersEndAtTheProxy) {
  auto client = Client::Connect(proxy_.address(), Options());
  ASSERT_TRUE(client.has_value()) << client.error().message;
  for (const std::string& bytes : {std::string(100'000, 'x'), std::string("GET / HTTP/1.1\r\n\r\n"),
                                   std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    const RawSocket socket(proxy_.address());
    ASSERT_TRUE(socket.connected());
    socket.Send(bytes);
    socket.ReadAll(200);
    EXPECT_TRUE(client->Health().value_or(false));
  }
  // More than the server has descriptors, which would take no new client after them.
  std::vector<std::unique_ptr<RawSocket>> flood;
  for (int i = 0; i < 150; ++i) {
    flood.push_back(std::make_unique<RawSocket>(proxy_.address()));
    ASSERT_TRUE(flood.back()->connected()) << i;
  }
  EXPECT_TRUE(client->Health().value_or(false));
  flood.clear();
  auto next = Client::Connect(proxy_.address(), Options());
  ASSERT_TRUE(next.has_value()) << next.error().message;
  EXPECT_TRUE(next->Solve(*client::FromMessage(MixedProblem())).has_value());
}

}  // namespace
}  // namespace sap::test
