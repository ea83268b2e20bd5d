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
#include <vector>

#include "proto/codec/message_bounds.h"
#include "server/rpc/server_call.h"

namespace sap {

class SessionStream final : public RpcMethod {
 public:
  SessionStream(HeadersFirst* service, const ServiceContext& context);

  // Requests a stream on the queue. Each accepted stream requests the next one: on its own queue,
  // or on the one with the fewest streams if its own has many more. Streams stay on their queues,
  // and otherwise all those of one connection would be on the same.
  void Await(grpc::ServerCompletionQueue* queue);

  // From now on every answer announces the shutdown.
  void AnnounceDrain() { drain_announced_.store(true, std::memory_order_relaxed); }

  // Accepts no more steps: each stream ends with UNAVAILABLE once its steps are answered. Call it
  // after InFlightCalls::Drain, by which later streams are turned away.
  void Drain();

 private:
  class Call;

  struct Queue {
    grpc::ServerCompletionQueue* queue;
    int streams{0};  // accepted and not ended
  };

  // A stream on the queue is accepted, and has ended.
  void Accepted(grpc::ServerCompletionQueue* queue);
  void Ended(grpc::ServerCompletionQueue* queue);

  // When a session that is opened now is asked to move to another connection.
  std::chrono::steady_clock::time_point NextLeaveTime(std::chrono::steady_clock::time_point opened);

  const MessageBounds bounds_;
  std::atomic<bool> drain_announced_{false};
  std::atomic<uint64_t> opened_{0};  // sessions so far
  std::mutex queues_mutex_;
  std::vector<Queue> queues_;
};

}  // namespace sap
