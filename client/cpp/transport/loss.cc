#include "client/cpp/transport/loss.h"

namespace sap::client {
namespace {

// gRPC's own status for a message over the limit of the server, which is the same at every server.
constexpr const char* kTooLarge = "larger than max";

}  // namespace

bool IsLoss(const Error& error, CallKind kind) {
  const bool is_chosen = !error.server.empty();
  switch (error.code) {
    case ErrorCode::kUnavailable:
      return true;
    case ErrorCode::kInternal:
      return !is_chosen;
    case ErrorCode::kResourceExhausted:
      return !is_chosen && error.message.find(kTooLarge) == std::string::npos;
    case ErrorCode::kCancelled:
    case ErrorCode::kAborted:
      return !is_chosen || kind == CallKind::kSession;
    default:
      return false;
  }
}

}  // namespace sap::client
