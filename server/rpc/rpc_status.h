// Converts ServiceError to grpc::Status, in one place: code, message, and as binary details the
// field at fault (google.rpc.BadRequest), the name of the limit (ErrorInfo) and the retry delay
// (RetryInfo).
#pragma once

#include <grpcpp/support/status.h>

#include "server/service_error.h"

namespace sap {

grpc::Status ToRpcStatus(const ServiceStatus& status);

// The status of calls that arrive while the server drains.
grpc::Status ShuttingDown();

}  // namespace sap
