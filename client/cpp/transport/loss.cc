#include "client/cpp/transport/loss.h"

namespace sap::client {

bool IsLoss(const Error& error, CallKind kind) {
  const bool is_chosen = !error.server.empty();
  switch (error.code) {
    case ErrorCode::kUnavailable:
      return true;
    case ErrorCode::kInternal:
      return !is_chosen;
    case ErrorCode::kCancelled:
    case ErrorCode::kAborted:
      return !is_chosen || kind == CallKind::kSession;
    default:
      return false;
  }
}

}  // namespace sap::client
