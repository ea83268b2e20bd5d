// A session over gRPC. Its state is here, so that it outlives connections and servers: after a loss
// a new stream is opened on any server of the channel, and the steps without an outcome are sent
// again. Internal.
//
//   lost -> new stream -> oldest step, with the velocities of the last solved one as its guess
//                           solved -> the other steps, which the server warm-starts
//                           failed -> the next step with that guess
#pragma once

#include <chrono>
#include <memory>

#include "client/cpp/transport/grpc_call.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {

// The request opens the session. After a loss a stream must be open within `reconnect_within`; 0:
// the session ends with its stream.
tl::expected<std::unique_ptr<SessionStream>, Error> OpenGrpcSession(
    std::shared_ptr<v1::SolverService::Stub> stub, const CallStart& start,
    const v1::SolveSessionRequest& request, Transport::Timeout deadline,
    std::chrono::nanoseconds reconnect_within);

}  // namespace sap::client
