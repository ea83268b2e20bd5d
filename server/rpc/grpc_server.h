// The gRPC server: one address, a completion queue with threads of its own, and the services on it.
// Nobody else sees the queue.
//
// Not gRPC's callback API: in this version (1.51) its threads sleep up to 100 ms after a second
// without calls, and their number cannot be set.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tl/expected.hpp>

#include "server/auth/authenticator.h"
#include "server/engine/engine.h"
#include "server/ops/call_observer.h"
#include "server/rpc/completion_threads.h"
#include "server/rpc/health_service.h"
#include "server/rpc/in_flight_calls.h"
#include "server/rpc/solver_service.h"
#include "server/server_config.h"

namespace sap {

class GrpcServer {
 public:
  // Serves from its return on. The engine must outlive the server. Fails, with a sentence for the
  // operator, if the address cannot be had: also if another server has it.
  // Where tokens (may be null) are given, every call needs one of them, but for health checks and
  // reflection. They must outlive the server, too.
  static tl::expected<std::unique_ptr<GrpcServer>, std::string> Start(
      const ServerConfig& config, Engine* engine, BearerTokens* tokens = nullptr,
      const CallObserver& watch = CallObserver(nullptr, nullptr));

  // Cancels the calls that run, and waits until they have noticed.
  ~GrpcServer();

  // What clients connect to; with the port that was found where 0 was asked for.
  const std::string& address() const { return address_; }

  // Answers health NOT_SERVING and tells open sessions, but still takes calls, so that clients have
  // time to turn elsewhere.
  void AnnounceDrain();

  // Answers new calls UNAVAILABLE and health NOT_SERVING, finishes the calls that run, cancels what
  // is left after the timeout, and closes all connections.
  void Drain(std::chrono::nanoseconds timeout);

 private:
  GrpcServer(const ServerConfig& config, Engine* engine, BearerTokens* tokens,
             const CallObserver& watch);

  void SweepNowAndThen();

  std::string address_;
  InFlightCalls in_flight_calls_;
  Authenticator authenticator_;
  const CallObserver watch_;
  SolverService solver_service_;
  HealthService health_service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<CompletionThreads> threads_;

  std::mutex sweep_mutex_;
  std::condition_variable sweep_wake_;
  bool sweep_ends_{false};
  std::thread sweeper_;
};

}  // namespace sap
