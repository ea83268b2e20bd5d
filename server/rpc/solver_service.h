// Serves sap.v1.SolverService on completion queues: passes each call to the handler and returns its
// outcome.
#pragma once

#include <grpcpp/grpcpp.h>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/batch_stream.h"
#include "server/rpc/service_context.h"
#include "server/rpc/session_stream.h"
#include "server/rpc/unary_call.h"

namespace sap {

class SolverService {
 public:
  // The members of the context and this object must outlive the server's completion queues.
  explicit SolverService(const ServiceContext& context);

  grpc::Service* service() { return &service_; }

  // Keeps `count` calls of each method awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

  // Sessions accept no more steps and end when the accepted ones are answered.
  void Drain() { session_.Drain(); }

  // Lame duck: answers of sessions announce the shutdown, and sessions continue.
  void AnnounceDrain() { session_.AnnounceDrain(); }

  // Enforces the idle, read and write timeouts; call periodically.
  void Sweep();

 private:
  using SolveMethod = UnaryMethod<v1::SolveRequest, v1::SolveResponse>;
  using BatchMethod = UnaryMethod<v1::SolveBatchRequest, v1::SolveBatchResponse>;
  using DifferentiateMethod = UnaryMethod<v1::DifferentiateRequest, v1::DifferentiateResponse>;
  using DifferentiateBatchMethod =
      UnaryMethod<v1::DifferentiateBatchRequest, v1::DifferentiateBatchResponse>;
  using InfoMethod = UnaryMethod<v1::GetServerInfoRequest, v1::GetServerInfoResponse>;

  HeadersFirstService<v1::SolverService::Service> service_{kNumSolverMethods};
  SolveMethod solve_;
  BatchMethod solve_batch_;
  BatchStream stream_batch_;
  SessionStream session_;
  DifferentiateMethod differentiate_;
  DifferentiateBatchMethod differentiate_batch_;
  InfoMethod info_;
};

}  // namespace sap
