#include "client/cpp/error.h"

#include <charconv>

namespace sap::client {

int64_t FieldIndex(const Error& error) {
  const std::string& field = error.field;
  const size_t bracket = field.rfind('[');
  if (bracket == std::string::npos || field.back() != ']') return -1;
  int64_t index = -1;
  const char* end = field.data() + field.size() - 1;
  const auto [rest, status] = std::from_chars(field.data() + bracket + 1, end, index);
  return status == std::errc() && rest == end ? index : -1;
}

const char* Name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case ErrorCode::kUnauthenticated:
      return "UNAUTHENTICATED";
    case ErrorCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case ErrorCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case ErrorCode::kAborted:
      return "ABORTED";
    case ErrorCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case ErrorCode::kCancelled:
      return "CANCELLED";
    case ErrorCode::kUnavailable:
      return "UNAVAILABLE";
    case ErrorCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case ErrorCode::kInternal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

}  // namespace sap::client
