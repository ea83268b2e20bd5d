// Why a call was not answered with a solution: our own codes, the same for every transport and for
// none, by the numbers of google.rpc.Code. rpc_status.h turns them into what gRPC sends.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace sap {

enum class ServiceCode : uint8_t {
  kCancelled = 1,           // by the client
  kInvalidArgument = 3,     // the request breaks a rule of the schema; never retry
  kDeadlineExceeded = 4,    // the deadline of the call passed before there was anything to return
  kPermissionDenied = 7,    // this client may not do that
  kResourceExhausted = 8,   // over a limit of the server; retry later
  kFailedPrecondition = 9,  // the session to resume is not there
  kAborted = 10,            // a session that was idle for too long
  kInternal = 13,           // a fault of ours
  kUnavailable = 14,        // the server is shutting down; retry elsewhere
  kUnauthenticated = 16,    // nobody that this server knows
};

// Whether nobody waits for the answer any more.
inline bool IsGivenUp(ServiceCode code) {
  return code == ServiceCode::kCancelled || code == ServiceCode::kDeadlineExceeded;
}

struct ServiceError {
  ServiceCode code{ServiceCode::kInternal};
  std::string message;      // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  std::string field;        // "contacts.friction[17]"; empty where no field is at fault
  std::string reason{};     // which limit, for programs: "CLIENT_CALLS"; empty where it is none
  double retry_after_s{0};  // not before; 0: nothing is known
};

using ServiceStatus = tl::expected<void, ServiceError>;

// An INVALID_ARGUMENT about a field: its name, then what is wrong with it, as one sentence.
inline tl::unexpected<ServiceError> RefuseField(const std::string& field,
                                                const std::string& reason) {
  return tl::unexpected(ServiceError{ServiceCode::kInvalidArgument, field + " " + reason, field});
}

}  // namespace sap
