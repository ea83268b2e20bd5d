// SolveSession on gRPC completion queues: one session per stream; steps are read ahead, and solved
// and answered in order.
//
//   read -> read -> read ...   at most max_steps_in_flight ahead of the answers
//     solve -> solve ...       one at a time: inline if small, or on the arena
//       write -> write ...
//
// A stream ends when the client has closed its side and received all answers; with INVALID_ARGUMENT
// at a message out of order; when the client disconnects or cancels; with ABORTED at the idle
// timeout; by cancellation when the write timeout expires, or the read timeout before the first
// message has arrived; and when the server drains, after the accepted steps are answered. The
// session ends with its stream: its state is the client's.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>

#include "sap/v1/solver_service.grpc.pb.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/service_context.h"

namespace sap {

// Must outlive the completion queues on which it awaits calls; the handler must outlive it.
class SessionStream {
 public:
  using Service = HeadersFirstService<v1::SolverService::Service>;

  SessionStream(Service* service, const ServiceContext& context)
      : service_(service), context_(context) {}

  // Requests a stream on the queue. Each accepted stream requests the next one.
  void Await(grpc::ServerCompletionQueue* queue);

  // From now on every answer announces the shutdown.
  void AnnounceDrain() { drain_announced_.store(true, std::memory_order_relaxed); }

  // Enforces the idle, read and write timeouts.
  void Sweep();

  // Accepts no more steps: each stream ends with UNAVAILABLE once its steps are answered.
  void Drain();

 private:
  class Call;

  // When a session that is opened now is asked to move to another connection.
  std::chrono::steady_clock::time_point NextLeaveTime(std::chrono::steady_clock::time_point opened);
  bool Add(Call* call);  // false: draining
  void Remove(Call* call);

  Service* const service_;
  const ServiceContext context_;
  std::atomic<bool> drain_announced_{false};
  std::atomic<uint64_t> opened_{0};  // sessions so far

  std::mutex mutex_;
  bool draining_{false};
  std::set<Call*> calls_;
};

}  // namespace sap
