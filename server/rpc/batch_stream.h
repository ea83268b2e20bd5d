// StreamBatch on gRPC completion queues: each problem is answered as soon as it is solved.
#pragma once

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/service_context.h"

namespace sap {

// Must outlive the completion queues that it awaits calls on, and the engine must outlive it.
class BatchStream {
 public:
  using Service = HeadersFirstService<v1::SolverService::Service>;

  BatchStream(Service* service, const ServiceContext& context)
      : service_(service), context_(context) {}

  // Accepts one call on the queue, and then the next ones as they come.
  void Await(grpc::ServerCompletionQueue* queue);

  // Cuts off clients that take no answers; to be called every now and then.
  void Sweep();

 private:
  class Call;

  void Add(Call* call);
  void Remove(Call* call);

  Service* const service_;
  const ServiceContext context_;

  std::mutex mutex_;
  std::set<Call*> calls_;  // that answer
};

}  // namespace sap
