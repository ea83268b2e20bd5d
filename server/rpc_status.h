// The one map from our errors to what gRPC sends: a code, a sentence, and for a bad request the
// field at fault as google.rpc.BadRequest in the binary details.
#pragma once

#include <grpcpp/support/status.h>

#include "server/service_error.h"

namespace sap {

grpc::Status ToRpcStatus(const ServiceStatus& status);

// What calls are answered that come while the server drains.
grpc::Status ShuttingDown();

}  // namespace sap
