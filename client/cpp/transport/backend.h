// Where the calls of a client are answered: by servers, or by the engine in this process. Internal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/transport/transport.h"

namespace sap::client {

// An open session.
class StepStream {
 public:
  virtual ~StepStream() = default;
  // Steps that are now accepted in flight.
  virtual int max_steps_in_flight() const = 0;
  // Whether the server has asked the session to move.
  virtual bool draining() const = 0;
  // False if the session has ended: Receive then returns the outcomes that have arrived, then the
  // reason.
  virtual bool Send(uint64_t step_id, const Problem& problem,
                    const std::optional<SolveOptions>& options) = 0;
  // Waits for the outcome of the next step. An error if the session has ended; then it must not be
  // called again.
  virtual tl::expected<StepOutcome, Error> Receive() = 0;
  virtual tl::expected<void, Error> Close() = 0;
};

// Thread-safe.
class Backend {
 public:
  using Timeout = Transport::Timeout;
  using Status = Transport::Status;
  using SolveOutcome = tl::expected<Solution, Error>;
  using DerivativesOutcome = tl::expected<Derivatives, Error>;

  virtual ~Backend() = default;
  virtual SolveOutcome Solve(const Problem& problem, const SolveOptions& options,
                             Timeout deadline) = 0;
  // One outcome per problem.
  virtual std::vector<SolveOutcome> SolveBatch(std::span<const Problem> problems,
                                               const SolveOptions& options, Timeout deadline) = 0;
  // One call of the sink at a time, and one for each problem.
  virtual Status StreamBatch(std::span<const Problem> problems, const SolveOptions& options,
                             Timeout deadline, const Client::BatchSink& sink) = 0;
  virtual DerivativesOutcome Differentiate(const Problem& problem,
                                           std::span<const Cotangent> cotangents,
                                           const DifferentiateOptions& options,
                                           Timeout deadline) = 0;
  virtual std::vector<DerivativesOutcome> DifferentiateBatch(
      std::span<const DifferentiateRequest> requests, const BatchLimits& limits,
      Timeout deadline) = 0;
  virtual tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(const SolveOptions& options,
                                                                       Timeout deadline) = 0;
  // Both end within five seconds.
  virtual tl::expected<ServerInfo, Error> Info(Timeout deadline) = 0;
  virtual tl::expected<bool, Error> Health() = 0;

  // Requests that were read from files, and are passed on as they are.
  virtual Status Solve(const v1::SolveRequest& request, v1::SolveResponse* response) = 0;
  virtual Status Differentiate(const v1::DifferentiateRequest& request,
                               v1::DifferentiateResponse* response) = 0;
};

// Calls of the transport, in messages.
std::unique_ptr<Backend> RemoteBackend(std::unique_ptr<Transport> transport, bool low_latency);

// The engine in this process, without messages.
std::unique_ptr<Backend> EmbeddedBackend(const ConnectOptions& options);

// The backend of an address: "embedded:", or that of servers.
tl::expected<std::unique_ptr<Backend>, Error> Connect(const std::string& address,
                                                      const ConnectOptions& options);

}  // namespace sap::client
