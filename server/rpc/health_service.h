// The standard health protocol, served from the same completion queue as the solver, so that an
// answer also proves that its threads run. (gRPC's own implementation adds polling threads, which
// would take events of other connections and deliver them late.)
//
// Service names: "" is the whole server, "sap.v1.SolverService" the solver. Both are SERVING from
// the start, since there is no initialization to wait for, and NOT_SERVING once the server drains.
#pragma once

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/rpc/unary_call.h"

namespace sap {

class HealthService {
 public:
  // Limits the number of open Watch streams; beyond it RESOURCE_EXHAUSTED.
  HealthService(int max_watchers, InFlightCalls* in_flight_calls);
  ~HealthService();

  grpc::Service* service() { return &service_; }

  // Keeps `count` Check calls and one Watch call awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

  // From now on NOT_SERVING. Watch streams receive it and end.
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
