// SolveSession on gRPC completion queues: a session per stream, its steps read ahead, solved and
// answered in their order.
//
//   read -> read -> read ...   at most max_steps_in_flight ahead of the answers
//     solve -> solve ...       one at a time: inline if small, or on the arena
//       write -> write ...
//
// A stream ends when the client has closed its side and has all answers; with INVALID_ARGUMENT at a
// message that has no place; when the client is gone or cancels, and then its session is kept for a
// while if it was opened so; with ABORTED when it was idle, or its answers were not taken, for too
// long; or, after the steps taken in so far are answered, when the server drains.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <mutex>
#include <set>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/engine/detached_sessions.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/service_context.h"

namespace sap {

// Must outlive the completion queues that it awaits calls on, and the engine must outlive it.
class SessionStream {
 public:
  using Service = HeadersFirstService<v1::SolverService::Service>;

  SessionStream(Service* service, const ServiceContext& context)
      : service_(service), context_(context), lost_(context.engine->config().session.resume_s) {}

  // Accepts one stream on the queue, and then the next ones as they come.
  void Await(grpc::ServerCompletionQueue* queue);

  // From now on every answer says that the server will go.
  void AnnounceDrain() { announced_.store(true, std::memory_order_relaxed); }

  // Ends sessions that were idle for too long, cuts off clients that take no answers, and drops
  // lost sessions that nobody has resumed.
  void Sweep();

  // Takes no more steps: every stream ends with UNAVAILABLE once its steps are answered.
  void Drain();

 private:
  class Call;

  bool Add(Call* call);  // false: draining
  void Remove(Call* call);
  tl::expected<std::unique_ptr<Session>, ServiceError> NewSession();

  Service* const service_;
  const ServiceContext context_;
  DetachedSessions lost_;
  std::atomic<bool> announced_{false};

  std::mutex mutex_;
  bool draining_{false};
  std::set<Call*> calls_;
};

}  // namespace sap
