// How calls over gRPC begin, and what their status means. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>

#include "client/cpp/transport/transport.h"

namespace sap::client {

// What every call begins with.
class CallStart {
 public:
  explicit CallStart(std::string authorization) : authorization_(std::move(authorization)) {}

  void Prepare(Transport::Timeout timeout, grpc::ClientContext* context) const {
    if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
    if (!timeout) return;
    context->set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(*timeout));
  }

 private:
  const std::string authorization_;
};

// With what the details of the status say.
Error ToError(const grpc::Status& status);

inline Transport::Status FromRpcStatus(const grpc::Status& status) {
  if (status.ok()) return {};
  return tl::unexpected(ToError(status));
}

}  // namespace sap::client
