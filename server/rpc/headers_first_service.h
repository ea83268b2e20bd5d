// A service of which every call is accepted before its message is read.
//
// gRPC's own asynchronous unary calls are handed over with their message. On the wire they are
// streams of one message each way, and served as such a call can be refused by its headers alone: a
// client stops sending when it is told, so a refusal costs the same whatever it wanted to send.
#pragma once

#include <grpcpp/grpcpp.h>

namespace sap {

// Service: the class that gRPC generates, as in v1::SolverService::Service.
template <typename Service>
class HeadersFirstService final : public Service {
 public:
  explicit HeadersFirstService(int num_methods) {
    for (int i = 0; i < num_methods; ++i) {
      this->MarkMethodStreamed(i, /*streamed_method=*/nullptr);
      this->MarkMethodAsync(i);
    }
  }

  // Waits for a call of that method, in the order of the schema.
  void Request(int method, grpc::ServerContext* context,
               grpc::internal::ServerAsyncStreamingInterface* stream,
               grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncBidiStreaming(method, context, stream, queue, queue, tag);
  }
};

}  // namespace sap
