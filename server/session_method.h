// SolveSession on gRPC completion queues: a session per stream, its steps read ahead, solved and
// answered in their order.
//
//   read -> read -> read ...   at most max_steps_in_flight ahead of the answers
//     solve -> solve ...       one at a time: inline if small, or on the arena
//       write -> write ...
//
// A stream ends when the client has closed its side and has all answers; with INVALID_ARGUMENT at a
// message that has no place; when the client is gone or cancels; or, after the steps taken in so
// far are answered, when the server drains.
#pragma once

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <set>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/callers.h"
#include "server/engine.h"
#include "server/open_calls.h"

namespace sap {

// Must outlive the completion queues that it awaits calls on, and the engine must outlive it.
class SessionMethod {
 public:
  using Service = v1::SolverService::AsyncService;

  SessionMethod(Service* service, Engine* engine, OpenCalls* open_calls, const Callers* callers)
      : service_(service), engine_(engine), open_calls_(open_calls), callers_(callers) {}

  // Accepts one stream on the queue, and then the next ones as they come.
  void Await(grpc::ServerCompletionQueue* queue);

  // Takes no more steps: every stream ends with UNAVAILABLE once its steps are answered.
  void Drain();

 private:
  class Call;

  bool Add(Call* call);  // false: draining
  void Remove(Call* call);

  Service* const service_;
  Engine* const engine_;
  OpenCalls* const open_calls_;
  const Callers* const callers_;

  std::mutex mutex_;
  bool draining_{false};
  std::set<Call*> calls_;
};

}  // namespace sap
