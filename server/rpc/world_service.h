// Serves sap.v1.WorldService on completion queues, where the server steps worlds.
#pragma once

#include <grpcpp/grpcpp.h>

#include "sap/v1/world_service.grpc.pb.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/service_context.h"
#include "server/rpc/unary_call.h"

namespace sap {

class WorldService {
 public:
  // The members of the context, worlds among them, and this object must outlive the server's
  // completion queues.
  explicit WorldService(const ServiceContext& context);

  grpc::Service* service() { return &service_; }

  // Keeps `count` calls of each method awaited on the queue.
  void Await(grpc::ServerCompletionQueue* queue, int count);

  // Enforces the read and write timeouts, and ends workers that are not used; call periodically.
  void Sweep();

 private:
  using PutMethod = UnaryMethod<v1::PutModelRequest, v1::PutModelResponse>;
  using AdvanceMethod = UnaryMethod<v1::AdvanceRequest, v1::AdvanceResponse>;

  WorldHandler* const worlds_;
  HeadersFirstService<v1::WorldService::Service> service_{kNumMethods - kNumSolverMethods};
  PutMethod put_;
  AdvanceMethod advance_;
};

}  // namespace sap
