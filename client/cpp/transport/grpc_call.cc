#include "client/cpp/transport/grpc_call.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "client/cpp/transport/advice.h"
#include "client/cpp/transport/loss.h"
#include "client/cpp/transport/message_conversion.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace sap::client {
namespace {

// Messages of gRPC, HAProxy and Envoy about calls that they gave to no server. A write ends with
// "Broken pipe" where the connection was lost before, so that no server has the whole message; code
// 7 is REFUSED_STREAM, which promises that nothing was processed (RFC 9113, 8.7).
constexpr std::array<std::string_view, 7> kNotSent = {"Broken pipe",
                                                      "RST_STREAM with error code 7",
                                                      "failed to connect to all addresses",
                                                      "http2 header with status: 503",
                                                      "no healthy upstream",
                                                      "reset reason: connection failure",
                                                      "reset reason: overflow"};

// Whether a server may have received the call. gRPC names the peer once the call has a connection,
// before that the target of the channel, which has no scheme, another one or several addresses.
bool WasSent(const grpc::ClientContext& context, std::string_view message) {
  const std::string peer = context.peer();
  const bool is_connected =
      peer.find(',') == std::string::npos &&
      (peer.starts_with("ipv4:") || peer.starts_with("ipv6:") || peer.starts_with("unix:"));
  const auto says = [&](std::string_view text) {
    return message.find(text) != std::string_view::npos;
  };
  return is_connected && std::ranges::none_of(kNotSent, says);
}

const char* NameOf(grpc::StatusCode code) {
  constexpr std::array kNames{"OK",
                              "CANCELLED",
                              "UNKNOWN",
                              "INVALID_ARGUMENT",
                              "DEADLINE_EXCEEDED",
                              "NOT_FOUND",
                              "ALREADY_EXISTS",
                              "PERMISSION_DENIED",
                              "RESOURCE_EXHAUSTED",
                              "FAILED_PRECONDITION",
                              "ABORTED",
                              "OUT_OF_RANGE",
                              "UNIMPLEMENTED",
                              "INTERNAL",
                              "UNAVAILABLE",
                              "DATA_LOSS",
                              "UNAUTHENTICATED"};
  const auto number = static_cast<size_t>(code);
  return number < kNames.size() ? kNames[number] : "of an unknown number";
}

// For a status without one.
std::string TextOf(grpc::StatusCode code) {
  if (code == grpc::StatusCode::UNIMPLEMENTED) {
    return "the server at this address does not know the call";
  }
  return std::string("the call has ended with the gRPC status ") + NameOf(code) + " and no text";
}

}  // namespace

Status CheckHeaders(const CallOptions& call) {
  constexpr size_t kLongest = 256;
  const auto check = [](const std::string& value, const char* field) -> Status {
    const bool is_printable =
        std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
    if (is_printable && value.size() <= kLongest) return {};
    return tl::unexpected(
        Error{ErrorCode::kInvalidArgument,
              std::string(field) + " must be printable ASCII of at most 256 characters", field});
  };
  if (Status checked = check(call.request_id, "options.call.request_id"); !checked) return checked;
  return check(call.traceparent, "options.call.traceparent");
}

void CallStart::Prepare(Timeout timeout, int lost_attempts, grpc::ClientContext* context) const {
  const auto add = [&](const char* header, const std::string& value) {
    if (!value.empty()) context->AddMetadata(header, value);
  };
  add("authorization", authorization->Value());
  add("x-request-id", call.request_id);
  add("traceparent", call.traceparent);
  // Admission is decided on the headers, before the server reads the message.
  if (high_priority) add("sap-priority", "high");
  if (lost_attempts > 0) add("sap-attempt", std::to_string(1 + lost_attempts));
  if (!timeout) return;
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(*timeout));
}

ServerIdentity IdentityIn(const Metadata& metadata) {
  const auto identity = metadata.find("sap-server");
  if (identity == metadata.end()) return {};
  return ParseServerIdentity({identity->second.data(), identity->second.size()});
}

Error ToError(const grpc::Status& status, const grpc::ClientContext& context, bool encrypted) {
  Error error{FromCode(status.error_code()), status.error_message(), ""};
  const auto& trailers = context.GetServerTrailingMetadata();
  if (const auto id = trailers.find("x-request-id"); id != trailers.end()) {
    error.request_id.assign(id->second.data(), id->second.size());
  }
  error.server = IdentityIn(trailers).boot_id;
  if (error.server.empty() && IsLoss(error, CallKind::kCall)) {
    error.lost_attempts = WasSent(context, error.message) ? 1 : 0;
    const std::string advice = Advice(error.message, encrypted);
    if (!advice.empty()) error.message = "no server can be reached: " + advice;
  }
  if (error.message.empty()) error.message = TextOf(status.error_code());
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
