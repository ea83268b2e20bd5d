// Why a call was not answered with a solution: our own codes, the same for every transport and for
// none. rpc_status.h turns them into what gRPC sends.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace sap {

enum class ServiceCode : uint8_t {
  kInvalidArgument,    // the request breaks a rule of the schema; never retry
  kResourceExhausted,  // over a limit of the server; retry later
  kDeadlineExceeded,   // the deadline of the call passed before there was anything to return
  kCancelled,          // by the client
  kInternal,           // a fault of ours
};

struct ServiceError {
  ServiceCode code{ServiceCode::kInternal};
  std::string message;  // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  std::string field;    // "contacts.friction[17]"; empty where no field is at fault
};

using ServiceStatus = tl::expected<void, ServiceError>;

// An INVALID_ARGUMENT about a field: its name, then what is wrong with it, as one sentence.
inline tl::unexpected<ServiceError> RefuseField(const std::string& field,
                                                const std::string& reason) {
  return tl::unexpected(ServiceError{ServiceCode::kInvalidArgument, field + " " + reason, field});
}

}  // namespace sap
