// Errors of the service, independent of the transport. The codes have the numbers of
// google.rpc.Code; rpc/rpc_status.h converts an error to a gRPC status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "solver/engine/engine_error.h"

namespace sap {

enum class ServiceCode : uint8_t {
  kCancelled = 1,           // by the client
  kInvalidArgument = 3,     // the request violates a rule of the schema; do not retry
  kDeadlineExceeded = 4,    // the deadline passed before a result was available
  kNotFound = 5,            // the server does not have it; give it and repeat the call
  kPermissionDenied = 7,    // the client is not authorized for this call
  kResourceExhausted = 8,   // a server limit is exceeded; retry later
  kFailedPrecondition = 9,  // the call was lost with several servers; do not retry
  kAborted = 10,            // the session exceeded its idle timeout
  kUnimplemented = 12,      // the server is not configured for this call
  kInternal = 13,           // a bug in the server
  kUnavailable = 14,        // the server is shutting down; retry on another server
  kUnauthenticated = 16,    // no valid credentials
};

// A step of a world, by their numbers in their call.
struct WorldStep {
  int64_t world{0};
  int64_t step{0};
};

struct ServiceError {
  ServiceError() = default;
  ServiceError(ServiceCode error_code, std::string text, std::string of_field,
               std::string of_limit = "")
      : code(error_code),
        message(std::move(text)),
        field(std::move(of_field)),
        reason(std::move(of_limit)) {}
  // Implicit: an error of the engine is one of the service.
  ServiceError(const EngineError& error)
      : ServiceError(static_cast<ServiceCode>(error.code), error.message, error.field,
                     error.reason) {}

  ServiceCode code{ServiceCode::kInternal};
  std::string message;      // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  std::string field;        // "contacts.friction[17]"; empty if no field is at fault
  std::string reason;       // limit that is exceeded, for programs: "CLIENT_CALLS"; or empty
  double retry_after_s{0};  // minimum delay before a retry; 0: unknown
  std::optional<WorldStep> world_step{};  // that ends its call; absent: none does
};

using ServiceStatus = tl::expected<void, ServiceError>;

inline ServiceStatus ToServiceStatus(const EngineStatus& status) {
  if (status) return {};
  return tl::unexpected(ServiceError(status.error()));
}

}  // namespace sap
