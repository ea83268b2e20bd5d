// Which errors are losses: connection or server ended the call for reasons of their own, so that it
// can be made again, at any server, and has the same answer. Internal.
//
//   UNAVAILABLE                        a loss
//   CANCELLED, INTERNAL, ABORTED       a loss unless a server chose it: gRPC and proxies report an
//   (UNKNOWN is taken as INTERNAL)     end of the connection so
//   RESOURCE_EXHAUSTED                 the same, unless it is about the size of the message
//   ABORTED, CANCELLED of a server     a loss of a session, which was idle or not read from
//   all others                         an outcome
//
// The client itself must not have cancelled the call.
#pragma once

#include "client/cpp/error.h"

namespace sap::client {

enum class CallKind : uint8_t { kCall, kSession };

bool IsLoss(const Error& error, CallKind kind);

// Whether gRPC refused a message for its size, as every server would.
bool IsTooLarge(const Error& error);

}  // namespace sap::client
