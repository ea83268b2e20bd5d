#include "server/rpc/rpc_status.h"

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/server_identity.h"
#include "server/service/failure_encoder.h"

namespace sap {
namespace {

// Domain of google.rpc.ErrorInfo.
constexpr const char* kErrorDomain = "sap.v1";

}  // namespace

grpc::Status ToRpcStatus(const ServiceStatus& status) {
  if (status) return grpc::Status::OK;
  const ServiceError& error = status.error();
  // gRPC and google.rpc.Code use the same numbers.
  const auto code = static_cast<grpc::StatusCode>(error.code);
  google::rpc::Status details;
  if (!error.field.empty()) {
    google::rpc::BadRequest bad_request;
    auto* violation = bad_request.add_field_violations();
    violation->set_field(error.field);
    violation->set_description(error.message);
    details.add_details()->PackFrom(bad_request);
  }
  if (!error.reason.empty()) {
    google::rpc::ErrorInfo info;
    info.set_reason(error.reason);
    info.set_domain(kErrorDomain);
    if (error.world_step) {
      (*info.mutable_metadata())["world"] = std::to_string(error.world_step->world);
      (*info.mutable_metadata())["step"] = std::to_string(error.world_step->step);
    }
    details.add_details()->PackFrom(info);
  }
  if (error.retry_after_s > 0) {
    google::rpc::RetryInfo retry;
    SetDuration(error.retry_after_s, retry.mutable_retry_delay());
    details.add_details()->PackFrom(retry);
  }
  if (details.details_size() == 0) return {code, error.message};
  details.set_code(code);
  details.set_message(error.message);
  return {code, error.message, details.SerializeAsString()};
}

grpc::Status ShuttingDown() {
  ServiceError error{ServiceCode::kUnavailable, "the server is shutting down; retry elsewhere", ""};
  error.reason = "SHUTTING_DOWN";
  return ToRpcStatus(tl::unexpected(error));
}

void MarkAsServed(grpc::ServerContext* context) {
  context->AddTrailingMetadata("sap-server", ServerIdentity());
}

}  // namespace sap
