#include "server/rpc_status.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sap {
namespace {

grpc::StatusCode ToRpcCode(ServiceCode code) {
  switch (code) {
    case ServiceCode::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ServiceCode::kResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ServiceCode::kDeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ServiceCode::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case ServiceCode::kInternal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

}  // namespace

grpc::Status ToRpcStatus(const ServiceStatus& status) {
  if (status) return grpc::Status::OK;
  const ServiceError& error = status.error();
  const grpc::StatusCode code = ToRpcCode(error.code);
  if (error.field.empty()) return {code, error.message};

  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field(error.field);
  violation->set_description(error.message);
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(error.message);
  details.add_details()->PackFrom(bad_request);
  return {code, error.message, details.SerializeAsString()};
}

}  // namespace sap
