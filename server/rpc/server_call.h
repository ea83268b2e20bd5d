// A call of any method, from its acceptance to its end. What methods have in common is here: who
// calls, whether it is let in, rejections and their delay, the end, the report of it.
//
//   Await -> Accepted -> Begin -> operations of the method ... EndWith -> Finish -> deleted
//                     \-> Reject, at once or delayed -------/
//                      \-> Done: cancelled, or ended
//
// One lock guards everything, and each handler of an operation holds it while it changes state, so
// that a call needs no thought about which of two events comes first: the queue may deliver the end
// of a call before its acceptance is handled. `pending_` counts the operations that will still
// complete, and the solve of a problem as one of them; the call is deleted when the last one has.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "server/ops/request_id.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/service_context.h"

namespace sap {

class ServerCall;

// One method of a service, and its accepted calls. Must outlive the completion queues on which its
// calls are awaited.
class RpcMethod {
 public:
  struct Description {
    HeadersFirst* service;
    int index;  // position in the schema
    // Null members: that part does not apply. Without an authenticator every client may call.
    ServiceContext context;
    std::optional<Method> reported_as{};  // to the observer
    // Also by a server that drains: its calls do no work of the solver, and no drain waits for
    // them.
    bool answered_while_draining{false};
    bool reserves{true};  // false: of the handler's limits only the rate of calls applies
  };

  explicit RpcMethod(const Description& description) : description_(description) {}
  RpcMethod(const RpcMethod&) = delete;
  RpcMethod& operator=(const RpcMethod&) = delete;

  const Description& description() const { return description_; }
  const ServiceContext& context() const { return description_.context; }

  // Ends calls that their clients hold up; call periodically.
  void Sweep();

  void Add(ServerCall* call);
  void Remove(ServerCall* call);

 protected:
  ~RpcMethod() = default;

  template <typename Function>
  void ForEachCall(Function&& function) {
    const std::lock_guard lock(mutex_);
    for (ServerCall* call : calls_) function(call);
  }

 private:
  const Description description_;
  std::mutex mutex_;
  std::set<ServerCall*> calls_;
};

class ServerCall {
 public:
  using Clock = CallContext::Clock;

  ServerCall(const ServerCall&) = delete;
  ServerCall& operator=(const ServerCall&) = delete;

  // Requests a call on the queue, which this object becomes and which deletes it.
  void Await();

  void Sweep(Clock::time_point now) {
    const Lock lock(mutex_);
    if (begun_) CancelIfOverdue(now);
  }

 protected:
  using Lock = std::unique_lock<std::mutex>;

  // Several calls may share a mutex, which outlives them.
  ServerCall(RpcMethod* method, grpc::ServerCompletionQueue* queue, std::mutex* shared = nullptr);
  virtual ~ServerCall() = default;

  // Requests the call after this one.
  virtual void AwaitNext() = 0;
  // The rest holds the lock, except for AtEnd.
  // The call is accepted.
  virtual void Begin() = 0;
  // The client has cancelled or is gone. Its other operations fail.
  virtual void OnCancelled() {}
  // Starts what can be started now. False: the call may already be deleted.
  virtual bool Continue(Lock*) { return true; }
  // Whether nothing keeps the status, once there is one, from being sent.
  virtual bool MayFinish() const { return true; }
  virtual void CancelIfOverdue(Clock::time_point) {}
  // The status of a call that is reported at its end, as it is known then.
  virtual grpc::Status StatusAtEnd() { return *end_status_; }
  // Releases what the call holds, before it stops counting.
  virtual void AtEnd() {}

  // Identifies the client and applies the limits on calls. False: the call ends with an error.
  bool LetIn();
  // The limits themselves; by default the one on the rate of calls.
  virtual ServiceStatus CheckLimits();

  // The status with which the call ends when it may; the first one counts.
  void EndWith(const grpc::Status& status) {
    if (!end_status_) end_status_ = status;
  }
  // The same for a call that is not let in, at the rate that the limiter allows.
  void Reject(const grpc::Status& status);
  void FinishIfPossible();
  // Continues the call; deletes it when it is complete. Do not use it afterwards.
  void Advance(Lock lock);

  // Parses a message of this size by `parse`, called with this call: here, or where long messages
  // are. Does not hold the lock.
  void Parse(size_t bytes, void (*parse)(void* call));

  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  const ServiceContext& services() const { return method_->context(); }
  const ServerConfig& config() const { return services().handler->config(); }
  CallContext SolveContext(Clock::time_point arrival) const {
    return {{arrival, deadline_, &cancelled_}, account_.get(), trace_.get()};
  }

  RpcMethod* const method_;
  grpc::ServerCompletionQueue* const queue_;
  std::mutex& mutex_;
  grpc::ServerContext context_;
  // Messages are read and written as bytes: gRPC reports one that it cannot parse like the end of
  // the stream, and parses it on the thread that receives.
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_;
  std::shared_ptr<ClientAccount> account_;  // null: of a stranger
  RequestId request_id_;                    // of all lines of the call
  std::unique_ptr<CallTrace> trace_;        // null: its client does not trace it
  Clock::time_point arrival_;               // of the call, then of its request
  Clock::time_point deadline_;
  Clock::time_point finish_start_;
  std::atomic<bool> cancelled_{false};
  int64_t request_bytes_{0};  // as reported
  int pending_{1};            // operations in progress; the end of the call is one
  bool done_{false};          // the end has come
  bool finishing_{false};     // the status is being sent
  bool reported_at_end_{false};
  std::optional<grpc::Status> end_status_;
  grpc::ByteBuffer last_message_;  // sent with the status, unless it is empty

 private:
  void Accepted(bool ok);
  void Done(bool ok);
  void RejectionDue(bool ok);
  void Finished(bool ok);
  void Report(const grpc::Status& status);
  void Delete();

  std::mutex own_mutex_;
  grpc::Alarm rejection_alarm_;
  bool rejection_delayed_{false};
  bool begun_{false};    // its acceptance is handled
  bool counted_{false};  // in InFlightCalls

  MemberTag<ServerCall> accepted_tag_{this, &ServerCall::Accepted};
  MemberTag<ServerCall> done_tag_{this, &ServerCall::Done};
  MemberTag<ServerCall> rejection_tag_{this, &ServerCall::RejectionDue};
  MemberTag<ServerCall> finished_tag_{this, &ServerCall::Finished};
};

// Priority from the header sap-priority, which is known before the message is read. High priority
// must be in the header, too, to pass admission where normal calls are rejected.
Priority PriorityInHeaders(const grpc::ServerContext& context);

}  // namespace sap
