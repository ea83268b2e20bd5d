// A session over gRPC. After its connection is lost, it is resumed on a new one, and the steps
// without an outcome are sent again. Internal.
#pragma once

#include <memory>

#include "client/cpp/transport/grpc_call.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {

// The request opens the session and says whether it is resumable.
tl::expected<std::unique_ptr<SessionStream>, Error> OpenGrpcSession(
    std::shared_ptr<v1::SolverService::Stub> stub, const CallStart& start,
    const v1::SolveSessionRequest& request, Transport::Timeout deadline);

}  // namespace sap::client
