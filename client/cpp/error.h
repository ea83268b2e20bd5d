// Why a client has no answer. The same for a server on the network, on a Unix socket and embedded.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sap::client {

enum class ErrorCode : uint8_t {
  kInvalidArgument,     // the request breaks a rule of the schema, or a file cannot be read
  kResourceExhausted,   // over a limit of the server: try again later
  kUnauthenticated,     // the server knows no such client
  kPermissionDenied,    // this client may not do that
  kFailedPrecondition,  // there is no session to resume
  kAborted,             // the session was idle for too long
  kDeadlineExceeded,
  kCancelled,
  kUnavailable,    // no server there, or it is shutting down: try again or elsewhere
  kUnimplemented,  // the server does not know this call
  kInternal,       // a fault of the server or of this library
};

struct Error {
  ErrorCode code{ErrorCode::kInternal};
  std::string message;   // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  std::string field;     // "contacts.friction[17]"; empty where no field is at fault
  std::string reason{};  // which limit of the server, as in "CLIENT_CALLS"; empty where it is none
  std::chrono::nanoseconds retry_after{0};  // not before; 0: the server does not say
};

// "INVALID_ARGUMENT", ...
const char* Name(ErrorCode code);

}  // namespace sap::client
