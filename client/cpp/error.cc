#include "client/cpp/error.h"

#include <charconv>
#include <utility>

namespace sap::client {
namespace {

constexpr std::pair<ErrorCode, const char*> kNames[] = {
    {ErrorCode::kCancelled, "CANCELLED"},
    {ErrorCode::kInvalidArgument, "INVALID_ARGUMENT"},
    {ErrorCode::kDeadlineExceeded, "DEADLINE_EXCEEDED"},
    {ErrorCode::kPermissionDenied, "PERMISSION_DENIED"},
    {ErrorCode::kResourceExhausted, "RESOURCE_EXHAUSTED"},
    {ErrorCode::kFailedPrecondition, "FAILED_PRECONDITION"},
    {ErrorCode::kAborted, "ABORTED"},
    {ErrorCode::kUnimplemented, "UNIMPLEMENTED"},
    {ErrorCode::kInternal, "INTERNAL"},
    {ErrorCode::kUnavailable, "UNAVAILABLE"},
    {ErrorCode::kUnauthenticated, "UNAUTHENTICATED"}};

}  // namespace

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
  for (const auto& [known, name] : kNames) {
    if (known == code) return name;
  }
  return "INTERNAL";
}

ErrorCode FromCode(int number) {
  for (const auto& [known, name] : kNames) {
    if (static_cast<int>(known) == number) return known;
  }
  return ErrorCode::kInternal;
}

}  // namespace sap::client
