// A session over gRPC. Its state is here, so that it outlives connections and servers: after a loss
// a new stream is opened on any server of the channel, and the steps without an outcome are sent
// again. Internal.
//
//   lost -> new stream -> oldest step, with the velocities of the last solved one as its guess
//                           solved -> the other steps, which the server warm-starts
//                           failed -> the next step with that guess
//
// All outcomes are of one build: after the first one, servers of other builds are passed over, and
// where there are no others the session ends with OTHER_BUILD.
//
// A server that announces its shutdown is left before it ends the stream: it gets no further step,
// and once its steps are answered, the next one goes to a new stream in the same way. Where none
// leads to another server, the session stays and tries again later.
//
// One coroutine does all that, from the opening to the end. Send and Take exchange steps and
// outcomes with it.
#pragma once

#include <chrono>
#include <memory>

#include "client/cpp/backend/backend.h"
#include "client/cpp/transport/event_loop.h"
#include "client/cpp/transport/grpc_call.h"
#include "client/cpp/transport/server_identity.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

// The part of its client that a session needs, and may outlive.
struct SessionResources {
  std::shared_ptr<grpc::Channel> channel;
  CallStart start;
  // After a loss a stream must be open within this time; 0: the session ends with its stream.
  std::chrono::nanoseconds reconnect_within;
  bool allow_mixed_servers;
  // Serves the session; null: the threads that wait do.
  std::shared_ptr<BackgroundLoop> background;
  bool opens_later;  // see SessionOptions
};

// The request opens the session. In the background, the session opens after this has returned.
tl::expected<std::unique_ptr<StepStream>, Error> OpenGrpcSession(
    const SessionResources& resources, const v1::SolveSessionRequest& request, Timeout deadline);

}  // namespace sap::client
