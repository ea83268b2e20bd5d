// Why a call has no answer. The same for a server on the network, on a Unix socket and embedded.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sap::client {

// Numbers of google.rpc.Code, as those of sap_error.
enum class ErrorCode : uint8_t {
  kCancelled = 1,
  kInvalidArgument = 3,  // the request breaks a rule of the schema, or a file cannot be read
  kDeadlineExceeded = 4,
  kPermissionDenied = 7,    // this client may not make the call
  kResourceExhausted = 8,   // a limit of the server is reached: retry later
  kFailedPrecondition = 9,  // the server cannot do this now
  kAborted = 10,            // the session was idle for too long
  kUnimplemented = 12,      // the server does not know this call
  kInternal = 13,           // a fault of the server or of this library
  kUnavailable = 14,      // no connection, or the server is shutting down: retry there or elsewhere
  kUnauthenticated = 16,  // the server does not accept the token, or needs one
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

// The code of that number; kInternal: there is none.
ErrorCode FromCode(int number);

}  // namespace sap::client
