// The gRPC server: one listen address, completion queues with their threads, and the services on
// them. The queues are private to this class.
//
// gRPC assigns connections to queues in turn, and a call to the queue of its connection as long as
// calls of its method are awaited there, else to another one.
//
// It does not use gRPC's callback API: in version 1.51 its pollers sleep up to 100 ms after a
// second without calls, and their number cannot be configured.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tl/expected.hpp>
#include <vector>

#include "server/auth/authenticator.h"
#include "server/auth/tls_credentials.h"
#include "server/listen_address.h"
#include "server/ops/call_observer.h"
#include "server/rpc/completion_threads.h"
#include "server/rpc/health_service.h"
#include "server/rpc/in_flight_calls.h"
#include "server/rpc/long_messages.h"
#include "server/rpc/message_transfers.h"
#include "server/rpc/rejection_rate_limiter.h"
#include "server/rpc/solver_service.h"
#include "server/rpc/unknown_methods.h"
#include "server/rpc/world_service.h"
#include "server/server_config.h"
#include "server/service/request_handler.h"

namespace sap {

class GrpcServer {
 public:
  // Serves from the return of this call on. Fails with an error message if the address is not
  // available, also if another server uses it. The handler must outlive the server. If tokens are
  // given (they may be null and must outlive the server), every call except health checks needs
  // one, and reflection is not offered. Without certificates (null; they must outlive the server)
  // it serves plain text, without worlds (likewise) no WorldService.
  static tl::expected<std::unique_ptr<GrpcServer>, std::string> Start(
      const ServerConfig& config, RequestHandler* handler, BearerTokens* tokens = nullptr,
      const CallObserver& observer = CallObserver(nullptr, nullptr),
      const ServerCertificates* certificates = nullptr, WorldHandler* worlds = nullptr);

  // Cancels in-flight calls and waits for them to end.
  ~GrpcServer();

  // The address with the assigned port if port 0 was requested.
  const std::string& address() const { return address_; }

  // Lame duck: health becomes NOT_SERVING and sessions announce the shutdown, but calls are still
  // accepted, so that clients have time to switch to another server.
  void AnnounceDrain();

  // Turns calls away, then sends GOAWAY and stops listening, so that clients connect elsewhere;
  // waits for in-flight calls, those being received included, up to the timeout; cancels the rest,
  // and closes all connections.
  //
  // gRPC 1.51 sends GOAWAY only when the server shuts down, and from then on ends new calls on old
  // connections itself, so it comes after the lame-duck period and not before. A call that crosses
  // it ends with CANCELLED, so calls are refused with UNAVAILABLE for a moment before, by which
  // those who call all the time pause. Refusing them for longer would keep clients on connections
  // that serve nothing.
  void Drain(std::chrono::nanoseconds timeout);

 private:
  GrpcServer(const ServerConfig& config, RequestHandler* handler, BearerTokens* tokens,
             const CallObserver& observer, WorldHandler* worlds);

  void StartThreads(bool assisted);
  void RunSweeper();
  void SweepCalls();

  std::string address_;
  std::optional<AddressClaim> claim_;  // until all else has ended
  RequestHandler* const handler_;
  InFlightCalls in_flight_calls_;
  Authenticator authenticator_;
  const CallObserver observer_;
  RejectionRateLimiter rejection_limiter_;
  MessageTransfers transfers_;
  LongMessages long_messages_;
  SolverService solver_service_;
  std::optional<WorldService> world_service_;  // where the server steps worlds
  HealthService health_service_;
  UnknownMethods unknown_methods_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<CompletionThreads> threads_;

  std::mutex sweep_mutex_;
  std::condition_variable sweep_wake_;
  bool sweeper_stopping_{false};
  std::thread sweeper_;
};

}  // namespace sap
