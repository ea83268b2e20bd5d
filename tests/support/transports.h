// One client over each transport, for tests with the parameters "embedded:", "tcp:", "unix:".
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "client/cpp/client.h"
#include "server/rpc/grpc_server.h"
#include "tests/support/await.h"
#include "tests/support/child_process.h"

namespace sap::test {

inline ServerConfig ConfigWithThreads(int threads) {
  ServerConfig config;
  config.threads = threads;
  return config;
}

// A server on an address of that kind, with an handler and a recorder (may be null) of its own; for
// "embedded:" none.
class Server {
 public:
  Server(const std::string& transport, ServerConfig config, RequestRecorder* recorder = nullptr) {
    if (transport == "embedded:") {
      address_ = transport;
      return;
    }
    config.listen =
        transport == "unix:" ? "unix:" + (directory_ / "socket").string() : "127.0.0.1:0";
    handler_ = std::make_unique<RequestHandler>(config, recorder);
    auto server = GrpcServer::Start(config, handler_.get());
    EXPECT_TRUE(server.has_value()) << server.error();
    server_ = std::move(*server);
    address_ = server_->address();
  }

  // Threads count only for an embedded one.
  client::Client Connect(int threads = 2) const {
    return Connect(client::ConnectOptions{.threads = threads});
  }
  client::Client Connect(client::ConnectOptions options) const {
    options.connect_timeout = kLong;
    auto client = client::Client::Connect(address_, options);
    EXPECT_TRUE(client.has_value()) << client.error().message;
    return std::move(*client);
  }

  const std::string& address() const { return address_; }
  RequestHandler* handler() { return handler_.get(); }
  GrpcServer* grpc() { return server_.get(); }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
};

// "embedded" of "embedded:".
inline std::string TransportName(const testing::TestParamInfo<const char*>& test) {
  return {test.param, std::strlen(test.param) - 1};
}

}  // namespace sap::test
