#include "client/cpp/transport/grpc_call.h"

#include "client/cpp/transport/message_conversion.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sap::client {

ServerIdentity IdentityIn(const Metadata& metadata) {
  const auto identity = metadata.find("sap-server");
  if (identity == metadata.end()) return {};
  return ParseServerIdentity({identity->second.data(), identity->second.size()});
}

Error ToError(const grpc::Status& status, const grpc::ClientContext& context) {
  Error error{FromCode(status.error_code()), status.error_message(), ""};
  const auto& trailers = context.GetServerTrailingMetadata();
  if (const auto id = trailers.find("x-request-id"); id != trailers.end()) {
    error.request_id.assign(id->second.data(), id->second.size());
  }
  error.server = IdentityIn(trailers).boot_id;
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return error;
  for (const auto& detail : details.details()) {
    google::rpc::BadRequest bad_request;
    google::rpc::ErrorInfo info;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
      error.field = bad_request.field_violations(0).field();
    } else if (detail.UnpackTo(&info)) {
      error.reason = info.reason();
    } else if (detail.UnpackTo(&retry)) {
      error.retry_after = FromMessage(retry.retry_delay());
    }
  }
  return error;
}

}  // namespace sap::client
