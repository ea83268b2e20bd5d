// Interface through which a client sends messages to servers. Internal.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "client/cpp/connect_options.h"
#include "client/cpp/error.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

// A longer time counts as this one, or as no limit: adding it to a clock could overflow.
inline constexpr std::chrono::hours kLongestTime{24 * 366};

// An open session.
class SessionStream {
 public:
  virtual ~SessionStream() = default;
  // Steps that the server now accepts in flight.
  virtual int max_steps_in_flight() const = 0;
  // Whether the server has asked the session to move.
  virtual bool draining() const = 0;
  // May take the contents of the request and leave older ones, whose storage can be reused. False
  // if the session has ended: Receive then returns the outcomes that have arrived, then the reason.
  virtual bool Send(v1::SolveSessionRequest* request) = 0;
  // Waits for the outcome of the next step. An error if the session has ended; then it must not be
  // called again.
  virtual tl::expected<void, Error> Receive(v1::SolveSessionResponse* response) = 0;
  virtual tl::expected<void, Error> Close() = 0;
};

// Thread-safe. A response is valid only if the status is not an error.
class Transport {
 public:
  using Timeout = std::optional<std::chrono::nanoseconds>;
  using Status = tl::expected<void, Error>;
  using BatchSink = std::function<void(const v1::StreamBatchResponse& response)>;

  virtual ~Transport() = default;
  virtual Status Solve(const v1::SolveRequest& request, Timeout deadline,
                       v1::SolveResponse* response) = 0;
  virtual Status SolveBatch(const v1::SolveBatchRequest& request, Timeout deadline,
                            v1::SolveBatchResponse* response) = 0;
  // One call of the sink at a time, and one for each problem.
  virtual Status StreamBatch(const v1::StreamBatchRequest& request, Timeout deadline,
                             const BatchSink& sink) = 0;
  virtual Status Differentiate(const v1::DifferentiateRequest& request, Timeout deadline,
                               v1::DifferentiateResponse* response) = 0;
  virtual Status DifferentiateBatch(const v1::DifferentiateBatchRequest& request, Timeout deadline,
                                    v1::DifferentiateBatchResponse* response) = 0;
  // The request opens the session.
  virtual tl::expected<std::unique_ptr<SessionStream>, Error> OpenSession(
      const v1::SolveSessionRequest& request, Timeout deadline) = 0;
  // Both end within five seconds.
  virtual Status Info(Timeout deadline, v1::GetServerInfoResponse* response) = 0;
  virtual tl::expected<bool, Error> Health() = 0;
};

// Connects to the servers of the address, see address.h. An error if no server takes calls within
// the connect timeout. What is lost is retried, see loss.h.
tl::expected<std::unique_ptr<Transport>, Error> ConnectByGrpc(const std::string& address,
                                                              const ConnectOptions& options);

}  // namespace sap::client
