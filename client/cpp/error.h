// Why a call has no answer. The same for a server on the network, on a Unix socket and embedded.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sap::client {

enum class ErrorCode : uint8_t {
  kInvalidArgument,     // the request breaks a rule of the schema, or a file cannot be read
  kResourceExhausted,   // a limit of the server is reached: retry later
  kUnauthenticated,     // the server does not accept the token, or needs one
  kPermissionDenied,    // this client may not make the call
  kFailedPrecondition,  // the server cannot do this now
  kAborted,             // the session was idle for too long
  kDeadlineExceeded,
  kCancelled,
  kUnavailable,    // no connection, or the server is shutting down: retry there or elsewhere
  kUnimplemented,  // the server does not know this call
  kInternal,       // a fault of the server or of this library
};

struct Error {
  ErrorCode code{ErrorCode::kInternal};
  std::string message{};  // "contacts.friction[17] is -0.3; it must be finite and >= 0"
  std::string field{};    // "contacts.friction[17]"; empty: no field is at fault
  std::string reason{};   // limit that was exceeded, as in "CLIENT_CALLS"; empty: none
  std::chrono::nanoseconds retry_after{0};  // wait before a retry; 0: the server suggests none
  // Names the failed call in the server's log; empty: embedded, or no server has answered.
  std::string request_id{};
  // Boot id of the server that ended the call with this error. Empty: none did, but gRPC, a proxy
  // or this library; or embedded; or the error is that of one problem of a batch or one step.
  std::string server{};
  // How often the call or step was lost with its connection after it was sent, each time to another
  // server where there is one. With 2 it may be the call that ends them.
  int lost_attempts{0};
};

// The number in brackets at the end of `field`: 17 of "contacts.friction[17]"; -1: there is none.
int64_t FieldIndex(const Error& error);

// "INVALID_ARGUMENT", ...
const char* Name(ErrorCode code);

}  // namespace sap::client
