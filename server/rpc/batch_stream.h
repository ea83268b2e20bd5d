// StreamBatch: each outcome is sent as soon as its problem is solved.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/request_call.h"

namespace sap {

class BatchStream final : public RpcMethod {
 public:
  BatchStream(HeadersFirst* service, const ServiceContext& context);

  // Requests a call on the queue. Each accepted call requests the next one.
  void Await(grpc::ServerCompletionQueue* queue);

 private:
  class Call;

  const MessageBounds bounds_;
};

}  // namespace sap
