// Faults of a server, which do no lasting harm: after each fault the server that is there answers
// as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "client/cpp/transport/message_conversion.h"
#include "sap/v1/solver_service.pb.h"
#include "tests/e2e/server_log.h"
#include "tests/e2e/server_process.h"
#include "tests/support/await.h"
#include "tests/support/generic_call.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

using client::Client;
using client::ErrorCode;

// The preface of every connection of HTTP/2, and empty settings.
const std::string kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 24 + 9);

client::Problem Small() { return *client::FromMessage(MixedProblem()); }

bool Answers(const ServerProcess& server) {
  auto client = Client::Connect(server.address(), {.connect_timeout = kPatience});
  return client.has_value() && client->Solve(Small()).has_value();
}

// A session is lost with its server, and its client is told; the next server on the address takes
// it from there.
TEST(FaultsTest, AKilledServerIsReplacedAndNobodyIsLeftHanging) {
  const TemporaryDirectory directory;
  const std::string address = "unix:" + (directory / "socket").string();
  auto first = std::make_unique<ServerProcess>(std::vector<std::string>{"--listen", address});
  auto client = Client::Connect(address, {.connect_timeout = kPatience});
  ASSERT_TRUE(client.has_value());
  auto session = client->OpenSession();
  ASSERT_TRUE(session.has_value());
  ASSERT_TRUE(session->Step(Small()).has_value());
  first->Signal(SIGKILL);
  first->Wait();
  ServerProcess second({"--listen", address});
  // The session goes on at the second server, and so does the client.
  const auto step = session->Step(Small());
  EXPECT_TRUE(step.has_value()) << step.error().message;
  EXPECT_TRUE(session->open());
  EXPECT_TRUE(client->Solve(Small()).has_value());
}

TEST(FaultsTest, AFullDiskForLogsCostsNoCall) {
  const ServerProcess server({"--log-file", "/dev/full", "--log-level", "debug"});
  Client client = server.Connect();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(client.Solve(Small()).has_value());
}

// No file may grow beyond 16 KB, which a recording does after some solves.
TEST(FaultsTest, AFullDiskForRecordingsCostsNoCall) {
  const TemporaryDirectory directory;
  ServerProcess server(
      {"--record", (directory / "").string()},
      {"/usr/bin/env", "--ignore-signal=XFSZ", "/usr/bin/prlimit", "--fsize=16384"});
  Client client = server.Connect();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(client.Solve(Small()).has_value());
  server.Terminate();
  const ProcessResult result = server.Wait();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, testing::HasSubstr("ends here: it cannot be written"));
}

// More connections than there are descriptors.
void ExhaustDescriptors(const ServerProcess& server) {
  std::vector<std::unique_ptr<RawSocket>> flood;
  for (int i = 0; i < 200; ++i) {
    flood.push_back(std::make_unique<RawSocket>(server.address()));
    if (flood.back()->connected()) flood.back()->Send(kPreface);
  }
}

// gRPC 1.51 takes no connections after that, which later versions do; so the server asks for as
// many descriptors as it may have, and the proxy keeps floods away from it (proxy_test.cc). Where
// that is not enough it ends, so that whoever started it starts it again, and those that are
// connected are told to move.
TEST(FaultsTest, AServerThatCannotBeConnectedToAnyMoreSaysSoAndDrains) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  ServerProcess server(
      {"--lame-duck-s", "600", "--metrics-listen", "127.0.0.1:0", "--log-file", log.string()},
      {"/usr/bin/prlimit", "--nofile=64"});
  const std::string metrics = AddressIn(log, "metrics");
  Client before = server.Connect();
  ASSERT_TRUE(before.Solve(Small()).has_value());
  EXPECT_THAT(HttpGet(metrics, "/live"), testing::StartsWith("HTTP/1.1 200"));
  ExhaustDescriptors(server);
  for (const char* path : {"/live", "/ready"}) {
    EXPECT_TRUE(Await([&] { return HttpGet(metrics, path).starts_with("HTTP/1.1 503"); }));
  }
  EXPECT_TRUE(AwaitMessage(log, "connections are no longer accepted"));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(before.Solve(Small()).has_value());
}

TEST(FaultsTest, AServerThatCannotBeConnectedToAnyMoreEndsWithAnError) {
  ServerProcess server({}, {"/usr/bin/env", "GRPC_VERBOSITY=NONE", "prlimit", "--nofile=64"});
  ExhaustDescriptors(server);
  EXPECT_EQ(server.Wait().exit_code, 1);
}

// If several start at once, one listens and the others say why they do not.
TEST(FaultsTest, OneServerListensOnAUnixSocket) {
  const TemporaryDirectory directory;
  const std::string socket = (directory / "s").string();
  for (int round = 0; round < 4; ++round) {
    std::vector<std::unique_ptr<ChildProcess>> servers;
    for (int i = 0; i < 4; ++i) {
      servers.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{
          SAP_SERVER_BINARY, "--listen", "unix:" + socket, "--threads", "1", "--io-threads", "1",
          "--admin-listen", "unix:" + socket + "-admin"}));
    }
    std::vector<ChildProcess*> listening;
    for (const auto& server : servers) {
      if (server->WaitForLine("listening on ", kPatience) == "unix:" + socket) {
        listening.push_back(server.get());
      } else {
        EXPECT_THAT(server->Wait(kPatience).err,
                    testing::HasSubstr("another server uses this address"));
      }
    }
    EXPECT_EQ(listening.size(), 1u);
    for (ChildProcess* server : listening) server->Signal(SIGKILL);  // its files stay
  }
}

// Connections without a request are closed; those that send it byte by byte delay no other client.
TEST(FaultsTest, SlowAndSilentPeersAreDroppedAndHoldUpNobody) {
  const ServerProcess server({"--handshake-timeout-s", "2", "--connection-idle-s", "5"});
  const RawSocket silent(server.address());
  const RawSocket slow(server.address());
  ASSERT_TRUE(silent.connected() && slow.connected());
  std::atomic<bool> slow_closed{false};
  std::thread writer([&] {
    for (const char byte : kPreface) {
      if (!slow.Send(std::string(1, byte))) slow_closed = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  Client client = server.Connect();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(client.Solve(Small()).has_value());
  EXPECT_TRUE(silent.ClosedWithin(300'000));
  writer.join();
  EXPECT_TRUE(slow_closed || slow.ClosedWithin(300'000));
  EXPECT_TRUE(Answers(server));
}

// A frame of HTTP/2. Its length may be a lie.
std::string Frame(int length, int type, int flags, int stream, const std::string& payload) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes += static_cast<char>(length >> shift);
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(stream >> shift);
  return bytes + payload;
}

constexpr int kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kContinuation = 9;
constexpr int kEndStream = 1, kEndHeaders = 4;

// The headers of a call of Solve, without compression [RFC 7541].
std::string SolveHeaders() {
  const std::string path = "/sap.v1.SolverService/Solve";
  const std::string type = "application/grpc";
  const auto text = [](const std::string& value) {
    return std::string(1, static_cast<char>(value.size())) + value;
  };
  // :method POST, :scheme http, :path, :authority, content-type, te.
  return "\x83\x86\x04" + text(path) + "\x01" + text("localhost") + "\x0f\x10" + text(type) +
         std::string(1, '\0') + text("te") + text("trailers");
}

// Rapid reset [CVE-2023-44487]: calls that are begun and given up as fast as they can be. Each one
// is a call that the server has taken in.
TEST(FaultsTest, ManyCallsThatAreResetAtOnceDoNoLastingHarm) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const ServerProcess server({"--metrics-listen", "127.0.0.1:0", "--log-file", log.string()});
  const std::string metrics = AddressIn(log, "metrics");
  const std::string headers = SolveHeaders();
  std::string resets = kPreface;
  constexpr int kCalls = 10'000;
  for (int stream = 1; stream < 2 * kCalls; stream += 2) {
    resets += Frame(static_cast<int>(headers.size()), kHeaders, kEndHeaders, stream, headers);
    resets += Frame(4, kReset, 0, stream, std::string("\0\0\0\x08", 4));
  }
  const RawSocket socket(server.address());
  ASSERT_TRUE(socket.connected());
  ASSERT_TRUE(socket.Send(resets));
  const auto started = [&] {
    const std::string text = HttpGet(metrics, "/metrics");
    const std::string name =
        "grpc_server_started_total{grpc_type=\"unary\",grpc_service=\"sap.v1."
        "SolverService\",grpc_method=\"Solve\"} ";
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
  };
  EXPECT_TRUE(Await([&] { return started() > kCalls / 100; })) << started();
  // Until the server has seen the resets, this client is at its limit of calls.
  EXPECT_TRUE(Await([&] { return Answers(server); }));
}

// gRPC receives such headers, and aborts where they are sent back.
TEST(FaultsTest, ARequestIdThatIsNoTextIsReplaced) {
  const TemporaryDirectory directory;
  const auto log = directory / "log";
  const ServerProcess server({"--log-file", log.string()});
  const std::string headers = SolveHeaders() + std::string("\0\x0cx-request-id\4a\1\x7f\xff", 19);
  const RawSocket socket(server.address());
  ASSERT_TRUE(socket.connected());
  socket.Send(kPreface + Frame(static_cast<int>(headers.size()), kHeaders, kEndStream | kEndHeaders,
                               1, headers));
  EXPECT_TRUE(Await([&] {
    return std::ranges::any_of(ReadLog(log), [](const nlohmann::json& line) {
      return line.value("method", "") == "Solve" && line.value("request_id", "").size() == 32;
    });
  }));
  EXPECT_TRUE(Answers(server));
}

// Bytes that are no HTTP/2, or bad HTTP/2: of that kind are inputs that later versions of gRPC were
// mended for.
TEST(FaultsTest, HostileBytesDoNoLastingHarm) {
  const ServerProcess server;
  // Calls without a single header.
  std::string resets = kPreface;
  for (int stream = 1; stream < 20'000; stream += 2) {
    resets += Frame(0, kHeaders, kEndHeaders, stream, "");
    resets += Frame(4, kReset, 0, stream, std::string(4, '\0'));
  }
  std::string continuations = kPreface + Frame(1, kHeaders, 0, 1, "\x82");
  for (int i = 0; i < 2000; ++i) {
    continuations += Frame(1000, kContinuation, 0, 1, std::string(1000, '\x82'));
  }
  // A table of headers that grows and shrinks with every block.
  std::string tables = kPreface;
  for (int stream = 1; stream < 4000; stream += 2) {
    tables +=
        Frame(4, kHeaders, kEndStream | kEndHeaders, stream, std::string("\x3f\xe1\x1f\x20", 4));
  }
  std::string pings = kPreface;
  for (int i = 0; i < 20'000; ++i) pings += Frame(8, kPing, 0, 0, std::string(8, 'p'));
  // A header of binary kind with text that is not base64.
  const std::string binary =
      kPreface + Frame(15, kHeaders, 5, 1, std::string("\x40\x05x-bin\x07!!!!!!!", 15));
  const std::vector<std::string> inputs{
      std::string(100'000, 'x'),
      std::string(100'000, '\0'),
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      kPreface + Frame(0xffffff, 0, 0, 1, std::string(1000, 'x')),
      kPreface + Frame(6, kSettings, 0, 0, std::string("\0\1\xff\xff\xff\xff", 6)),
      resets,
      continuations,
      tables,
      pings,
      binary};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RawSocket socket(server.address());
    ASSERT_TRUE(socket.connected()) << i;
    socket.Send(inputs[i]);
    socket.ReadAll(100);
    EXPECT_TRUE(Answers(server)) << "after input " << i;
  }
}

// Bytes that are no message are refused, and nothing of them, or about them, gets past the log.
TEST(FaultsTest, BytesThatAreNoMessageLeaveNoLines) {
  ServerProcess server({"--log-level", "error"});
  const auto channel = grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials());
  v1::SolveRequest request;
  request.mutable_options()->mutable_response_mask()->add_paths("vel");
  std::string bytes = request.SerializeAsString();
  bytes.back() = '\xff';  // no UTF-8
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(CallByName(channel, "/sap.v1.SolverService/Solve", bytes).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  server.Terminate();
  const ProcessResult result = server.Wait();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace sap::test
