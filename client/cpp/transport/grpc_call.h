// Context and status of gRPC calls: deadline and authorization in, Error out. Internal.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>
#include <utility>

#include "client/cpp/transport/server_identity.h"
#include "client/cpp/transport/transport.h"

namespace sap::client {

// Sets in a context what every call needs: the authorization header, the deadline, and the number
// of the attempt if an earlier one was lost after it was sent.
class CallStart {
 public:
  explicit CallStart(std::string authorization) : authorization_(std::move(authorization)) {}

  void Prepare(Transport::Timeout timeout, grpc::ClientContext* context,
               int lost_attempts = 0) const {
    if (lost_attempts > 0) context->AddMetadata("sap-attempt", std::to_string(1 + lost_attempts));
    if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
    if (!timeout) return;
    context->set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(*timeout));
  }

 private:
  const std::string authorization_;
};

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// In the trailing metadata it says who has decided how the call ends, in the initial metadata who
// answers.
ServerIdentity IdentityIn(const Metadata& metadata);

// The error of a call that has ended with one. Includes field, reason and retry time from the
// details of the status, request id and server from the trailing metadata, and whether the call was
// lost after it was sent.
Error ToError(const grpc::Status& status, const grpc::ClientContext& context);

inline Transport::Status FromRpcStatus(const grpc::Status& status,
                                       const grpc::ClientContext& context) {
  if (status.ok()) return {};
  return tl::unexpected(ToError(status, context));
}

}  // namespace sap::client
