// The standard health protocol, served from the same completion queues as the solver, so that an
// answer also shows that they are alive. (gRPC's own implementation brings threads that poll, which
// would take connections' events away from ours and hand them over late.)
//
// Names: "" is the server as a whole, "sap.v1.SolverService" whether it takes calls. Both are
// SERVING from the start, since a server that answers at all is ready, and NOT_SERVING once it
// drains.
#pragma once

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/rpc/unary_call.h"

namespace sap {

class HealthService {
 public:
  // At most max_watchers Watch streams are open at once; beyond it RESOURCE_EXHAUSTED.
  HealthService(int max_watchers, InFlightCalls* in_flight_calls);
  ~HealthService();

  grpc::Service* service() { return &service_; }

  // Keeps `count` Check calls and one Watch call awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

  // NOT_SERVING from now on: watchers are told, and their streams end.
  void Drain();

 private:
  class Watcher;
  using Service = grpc::health::v1::Health::Service;
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;
  using CheckMethod = UnaryMethod<Service, grpc::health::v1::HealthCheckRequest,
                                  grpc::health::v1::HealthCheckResponse>;

  void Check(CheckMethod::Call* call);

  const size_t max_watchers_;
  InFlightCalls* const in_flight_calls_;
  HeadersFirstService<Service> service_{2};
  CheckMethod check_;

  std::mutex mutex_;
  bool draining_{false};
  std::set<Watcher*> watchers_;
};

}  // namespace sap
