// What carries a client's messages to a server: gRPC, or a call within the process. Internal.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

// Thread-safe.
class Transport {
 public:
  using Timeout = std::optional<std::chrono::nanoseconds>;
  using Status = tl::expected<void, Error>;

  virtual ~Transport() = default;
  virtual Status Solve(const v1::SolveRequest& request, Timeout deadline,
                       v1::SolveResponse* response) = 0;
  virtual Status Info(v1::GetServerInfoResponse* response) = 0;
  virtual tl::expected<bool, Error> Health() = 0;
};

// A server at HOST:PORT or unix:PATH that answers within the timeout.
tl::expected<std::unique_ptr<Transport>, Error> ConnectByGrpc(
    const std::string& address, std::chrono::nanoseconds connect_timeout);

// The server's engine within this process; threads 0: one per processor.
std::unique_ptr<Transport> Embed(int threads);

}  // namespace sap::client
