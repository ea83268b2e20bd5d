// StreamBatch on gRPC completion queues: each problem is answered as soon as it is solved.
#pragma once

#include <grpcpp/grpcpp.h>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/callers.h"
#include "server/engine.h"
#include "server/open_calls.h"

namespace sap {

// Must outlive the completion queues that it awaits calls on, and the engine must outlive it.
class StreamBatchMethod {
 public:
  using Service = v1::SolverService::AsyncService;

  StreamBatchMethod(Service* service, Engine* engine, OpenCalls* open_calls, const Callers* callers)
      : service_(service), engine_(engine), open_calls_(open_calls), callers_(callers) {}

  // Accepts one call on the queue, and then the next ones as they come.
  void Await(grpc::ServerCompletionQueue* queue);

 private:
  class Call;

  Service* const service_;
  Engine* const engine_;
  OpenCalls* const open_calls_;
  const Callers* const callers_;
};

}  // namespace sap
