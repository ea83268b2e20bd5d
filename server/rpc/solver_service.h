// The calls of sap.v1.SolverService on completion queues: each is passed to the engine and its
// outcome sent back.
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
  // What the context names must outlive the server's completion queues, and so must this.
  explicit SolverService(const ServiceContext& context);

  grpc::Service* service() { return &service_; }

  // Keeps `count` calls of each method awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

  // Open sessions take no more steps, and end when those there are answered.
  void Drain() { session_.Drain(); }

  // Sessions are told that the server will go, and go on.
  void AnnounceDrain() { session_.AnnounceDrain(); }

  // Ends what has been idle for too long; to be called every now and then.
  void Sweep() {
    session_.Sweep();
    stream_batch_.Sweep();
  }

 private:
  using Service = v1::SolverService::Service;
  using SolveMethod = UnaryMethod<Service, v1::SolveRequest, v1::SolveResponse>;
  using BatchMethod = UnaryMethod<Service, v1::SolveBatchRequest, v1::SolveBatchResponse>;
  using InfoMethod = UnaryMethod<Service, v1::GetServerInfoRequest, v1::GetServerInfoResponse>;

  HeadersFirstService<Service> service_{kNumMethods};
  RejectionRateLimiter pace_;
  SolveMethod solve_;
  BatchMethod solve_batch_;
  BatchStream stream_batch_;
  SessionStream session_;
  InfoMethod info_;
};

}  // namespace sap
