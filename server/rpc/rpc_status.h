// Converts ServiceError to grpc::Status, in one place: code, message, and as binary details the
// field at fault (google.rpc.BadRequest), the name of the limit (ErrorInfo) with world and step at
// fault as its metadata, and the retry delay (RetryInfo). Marks what the server answers.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "server/service_error.h"

namespace sap {

grpc::Status ToRpcStatus(const ServiceStatus& status);

// The status of calls that arrive while the server drains.
grpc::Status ShuttingDown();

// Puts `sap-server` into the trailing metadata, see ServerIdentity. A status that reaches the
// client without it was not chosen by a server: the connection was lost, or a proxy ended the call.
// At most once, before the call is finished.
void MarkAsServed(grpc::ServerContext* context);

}  // namespace sap
