// The one map from our errors to what gRPC sends: a code, a sentence, and in the binary
// details for a bad request the field at fault (google.rpc.BadRequest), for a limit its name
// (ErrorInfo) and the time after which to try again (RetryInfo).
#pragma once

#include <grpcpp/support/status.h>

#include "server/service_error.h"

namespace sap {

grpc::Status ToRpcStatus(const ServiceStatus& status);

// What calls are answered that come while the server drains.
grpc::Status ShuttingDown();

}  // namespace sap
