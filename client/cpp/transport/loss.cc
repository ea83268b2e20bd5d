#include "client/cpp/transport/loss.h"

namespace sap::client {
namespace {

// In gRPC's own status for a message over a limit.
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
      return !is_chosen && !IsTooLarge(error);
    case ErrorCode::kCancelled:
    case ErrorCode::kAborted:
      return !is_chosen || kind == CallKind::kSession;
    default:
      return false;
  }
}

bool IsTooLarge(const Error& error) {
  return error.code == ErrorCode::kResourceExhausted &&
         error.message.find(kTooLarge) != std::string::npos;
}

}  // namespace sap::client
