// The HTTP server of probes and scrapes: what it answers, and what no peer can do to the others.
#include "server/ops/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/await.h"
#include "tests/support/raw_socket.h"

namespace sap::test::http_server_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kPatience_ms = 300'000;

// Answers with the path; /large has more bytes than the kernel buffers.
class HttpServerTest : public testing::Test {
 protected:
  void Start(const HttpServer::Limits& limits) {
    auto server = HttpServer::Start(
        "127.0.0.1:0",
        [](std::string_view path) -> HttpServer::Response {
          if (path == "/large") return {200, std::string(kLarge_bytes, 'x')};
          return {200, "path " + std::string(path)};
        },
        limits);
    ASSERT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    address_ = "127.0.0.1:" + std::to_string(server_->port());
  }

  std::string Answer(const std::string& request) const {
    const RawSocket socket(address_);
    EXPECT_TRUE(socket.connected());
    socket.Send(request);
    return socket.ReadAll(kPatience_ms);
  }

  static constexpr size_t kLarge_bytes = 64 << 20;

  std::unique_ptr<HttpServer> server_;
  std::string address_;
};

TEST_F(HttpServerTest, AGetIsAnsweredAndTheConnectionCloses) {
  Start({});
  const std::string answer = Answer("GET /a/b?c=d HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 9\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\npath /a/b"));
}

TEST_F(HttpServerTest, ARequestMayComeInPieces) {
  Start({});
  const RawSocket socket(address_);
  for (const char* piece : {"GE", "T /x HTT", "P/1.1\r\nHost: h\r", "\n\r\n"}) {
    socket.Send(piece);
    EXPECT_THAT(Answer("GET /y HTTP/1.0\r\n\r\n"), EndsWith("path /y"));
  }
  EXPECT_THAT(socket.ReadAll(kPatience_ms), EndsWith("path /x"));
}

TEST_F(HttpServerTest, OtherMethodsAreNotAllowed) {
  Start({});
  const std::string answer =
      Answer("POST /x HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'b'));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(Answer("get /x HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405"));
}

// The length is that of the body which a GET would have [RFC 9110, 9.3.2].
TEST_F(HttpServerTest, AHeadIsAGetWithoutTheBody) {
  Start({});
  const std::string get = Answer("GET /a/b HTTP/1.1\r\n\r\n");
  EXPECT_EQ(Answer("HEAD /a/b HTTP/1.1\r\n\r\n") + "path /a/b", get);
}

TEST_F(HttpServerTest, WhatIsNoRequestIsABadRequest) {
  Start({});
  for (const char* text : {"\r\n\r\n", "GET\r\n\r\n", "GET /x\r\n\r\n", "GET /x SPDY\r\n\r\n",
                           "GET  HTTP/1.1 x\r\n\r\n"}) {
    EXPECT_THAT(Answer(text), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << text;
  }
}

TEST_F(HttpServerTest, AHeaderOverTheLimitIsRefused) {
  Start({.header_bytes = 1000});
  EXPECT_THAT(Answer("GET /x HTTP/1.1\r\nA: " + std::string(2000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Answer(std::string(1'000'000, 'a')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Answer("GET /x HTTP/1.1\r\nA: " + std::string(900, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

// A peer beyond the bound takes the place of the oldest one.
TEST_F(HttpServerTest, SilentPeersAreBoundedAndKeepNobodyOut) {
  Start({.connections = 4, .duration = std::chrono::hours(1)});
  std::vector<std::unique_ptr<RawSocket>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<RawSocket>(address_));
  EXPECT_THAT(Answer("GET /x HTTP/1.1\r\n\r\n"), EndsWith("path /x"));
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(silent[i]->ClosedWithin(kPatience_ms)) << i;
}

// A probe that is slow to send its request is not evicted by a flood from elsewhere.
TEST_F(HttpServerTest, AFloodFromOneAddressEvictsItsOwnConnections) {
  Start({.connections = 4, .duration = std::chrono::hours(1)});
  const RawSocket probe(address_);
  std::vector<std::unique_ptr<RawSocket>> flood;
  for (int i = 0; i < 20; ++i) {
    flood.push_back(std::make_unique<RawSocket>(address_, "127.0.0.2"));
  }
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(flood[i]->ClosedWithin(kPatience_ms)) << i;
  EXPECT_THAT(Answer("GET /y HTTP/1.1\r\n\r\n"), EndsWith("path /y"));
  probe.Send("GET /x HTTP/1.1\r\n\r\n");
  EXPECT_THAT(probe.ReadAll(kPatience_ms), EndsWith("path /x"));
}

TEST_F(HttpServerTest, ASilentPeerIsClosedInTime) {
  Start({.duration = std::chrono::milliseconds(50)});
  EXPECT_TRUE(RawSocket(address_).ClosedWithin(kPatience_ms));
  const RawSocket partial(address_);
  partial.Send("GET /x HT");
  EXPECT_TRUE(partial.ClosedWithin(kPatience_ms));
}

TEST_F(HttpServerTest, ALargeAnswerArrivesWhole) {
  Start({.duration = std::chrono::minutes(5)});
  EXPECT_GT(Answer("GET /large HTTP/1.1\r\n\r\n").size(), kLarge_bytes);
}

// Its answer does not fit into the buffers of the kernel.
TEST_F(HttpServerTest, APeerThatDoesNotReadDelaysNobody) {
  Start({.duration = std::chrono::hours(1)});
  const RawSocket lazy(address_);
  lazy.Send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_THAT(Answer("GET /x HTTP/1.1\r\n\r\n"), EndsWith("path /x"));
}

TEST_F(HttpServerTest, ItEndsWithConnectionsOpen) {
  Start({});
  const RawSocket silent(address_);
  server_.reset();
  EXPECT_TRUE(silent.ClosedWithin(kPatience_ms));
}

TEST_F(HttpServerTest, AnAddressInUseIsAnError) {
  Start({});
  const auto second = HttpServer::Start(address_, nullptr, {});
  ASSERT_FALSE(second.has_value());
  EXPECT_THAT(second.error(), HasSubstr("cannot listen on " + address_));
}

TEST(HttpServerAddressTest, NamesAreAddresses) {
  const auto server = HttpServer::Start("localhost:0", nullptr, {});
  EXPECT_TRUE(server.has_value()) << server.error();
  EXPECT_FALSE(HttpServer::Start("no-such-host.invalid:0", nullptr, {}).has_value());
}

}  // namespace
}  // namespace sap::test::http_server_test
