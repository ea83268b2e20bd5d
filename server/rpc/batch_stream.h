// StreamBatch on gRPC completion queues: each outcome is sent as soon as its problem is solved.
#pragma once

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/service_context.h"

namespace sap {

// Must outlive the completion queues on which it awaits calls; the handler must outlive it.
class BatchStream {
 public:
  using Service = HeadersFirstService<v1::SolverService::Service>;

  BatchStream(Service* service, const ServiceContext& context)
      : service_(service), context_(context) {}

  // Requests a call on the queue. Each accepted call requests the next one.
  void Await(grpc::ServerCompletionQueue* queue);

  // Cancels calls whose request does not arrive within the read timeout, or whose client does not
  // receive the answers within the write timeout and a second per megabyte; call periodically.
  void Sweep();

 private:
  class Call;

  void Add(Call* call);
  void Remove(Call* call);

  Service* const service_;
  const ServiceContext context_;

  std::mutex mutex_;
  std::set<Call*> calls_;  // all accepted calls
};

}  // namespace sap
