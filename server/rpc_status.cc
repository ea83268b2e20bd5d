#include "server/rpc_status.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sap {

grpc::Status ToRpcStatus(const ServiceStatus& status) {
  if (status) return grpc::Status::OK;
  const ServiceError& error = status.error();
  // The numbers of gRPC and of google.rpc.Code are the same.
  const auto code = static_cast<grpc::StatusCode>(error.code);
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

grpc::Status ShuttingDown() {
  return ToRpcStatus(tl::unexpected(
      ServiceError{ServiceCode::kUnavailable, "the server is shutting down; retry elsewhere", ""}));
}

}  // namespace sap
