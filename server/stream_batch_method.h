// StreamBatch on gRPC completion queues: each problem is answered as soon as it is solved.
#pragma once

#include <grpcpp/grpcpp.h>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/service_context.h"

namespace sap {

// Must outlive the completion queues that it awaits calls on, and the engine must outlive it.
class StreamBatchMethod {
 public:
  using Service = v1::SolverService::AsyncService;

  StreamBatchMethod(Service* service, const ServiceContext& context)
      : service_(service), context_(context) {}

  // Accepts one call on the queue, and then the next ones as they come.
  void Await(grpc::ServerCompletionQueue* queue);

 private:
  class Call;

  Service* const service_;
  const ServiceContext context_;
};

}  // namespace sap
