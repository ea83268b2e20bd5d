#include "tests/support/generic_call.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>

namespace sap::test {

grpc::Status CallByName(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                        const std::string& bytes) {
  constexpr std::chrono::seconds kPatience{300};
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

}  // namespace sap::test
