#include "server/rpc/server_call.h"

#include <new>

#include "server/rpc/rpc_status.h"

namespace sap {
namespace {

// The call's deadline on the steady clock.
ServerCall::Clock::time_point SteadyDeadline(const grpc::ServerContext& context) {
  // A deadline more than a year ahead counts as none; the difference of the clocks must not
  // overflow.
  constexpr std::chrono::hours kNever{24 * 366};
  const auto left = context.deadline() - std::chrono::system_clock::now();
  if (context.deadline() == std::chrono::system_clock::time_point::max() || left > kNever) {
    return ServerCall::Clock::time_point::max();
  }
  return ServerCall::Clock::now() + left;
}

// A client says in sap-attempt that a call was lost before, with the servers that had it. A third
// server is not given what may have ended two.
ServiceStatus CheckAttempt(const grpc::ServerContext& context) {
  const auto header = context.client_metadata().find("sap-attempt");
  if (header == context.client_metadata().end()) return {};
  if (header->second == "1" || header->second == "2") return {};
  return tl::unexpected(ServiceError{ServiceCode::kFailedPrecondition,
                                     "this call was lost with two servers; it may have ended them",
                                     "", "ATTEMPTS"});
}

}  // namespace

Priority PriorityInHeaders(const grpc::ServerContext& context) {
  const auto header = context.client_metadata().find("sap-priority");
  const bool high = header != context.client_metadata().end() && header->second == "high";
  return high ? Priority::kHigh : Priority::kNormal;
}

void RpcMethod::Sweep() {
  ForEachCall([now = ServerCall::Clock::now()](ServerCall* call) { call->Sweep(now); });
}

void RpcMethod::Add(ServerCall* call) {
  const std::lock_guard lock(mutex_);
  calls_.insert(call);
}

void RpcMethod::Remove(ServerCall* call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

ServerCall::ServerCall(RpcMethod* method, grpc::ServerCompletionQueue* queue, std::mutex* shared)
    : method_(method),
      queue_(queue),
      mutex_(shared != nullptr ? *shared : own_mutex_),
      stream_(&context_) {}

void ServerCall::Await() {
  services().in_flight_calls->BeginOnQueue();
  context_.AsyncNotifyWhenDone(&done_tag_);
  const RpcMethod::Description& method = method_->description();
  method.service->Request(method.index, &context_, &stream_, queue_, &accepted_tag_);
}

void ServerCall::Accepted(bool ok) {
  if (!ok) return Delete();  // shutting down: the done tag will not complete
  AwaitNext();
  method_->Add(this);
  Lock lock(mutex_);
  arrival_ = Clock::now();
  deadline_ = SteadyDeadline(context_);
  if (const CallObserver* const observer = services().observer; observer != nullptr) {
    observer->Started(*method_->description().reported_as);
    trace_ = observer->TraceOf(context_);
  }
  Begin();
  begun_ = true;
  Advance(std::move(lock));
}

bool ServerCall::LetIn() {
  if (services().authenticator != nullptr) {
    auto account = services().authenticator->Identify(context_);
    if (!account) return Reject(ToRpcStatus(tl::unexpected(account.error()))), false;
    account_ = std::move(*account);
  }
  // After strangers are rejected: a drain does not wait for them.
  counted_ = !method_->description().answered_while_draining;
  if (counted_ && !services().in_flight_calls->Enter()) return EndWith(ShuttingDown()), false;
  if (services().handler == nullptr) return true;
  const ServiceStatus checked = CheckAttempt(context_).and_then([this] { return CheckLimits(); });
  if (!checked) Reject(ToRpcStatus(checked));
  return checked.has_value();
}

ServiceStatus ServerCall::CheckLimits() { return services().handler->CheckRate(account_.get()); }

void ServerCall::Reject(const grpc::Status& status) {
  EndWith(status);
  if (cancelled() || services().rejection_limiter == nullptr) return;
  rejection_delayed_ = services().rejection_limiter->Delay(account_.get(), queue_, &rejection_tag_,
                                                           &rejection_alarm_);
  if (rejection_delayed_) ++pending_;
}

// The rejection may be sent, or need not wait since the client is gone.
void ServerCall::RejectionDue(bool) {
  Lock lock(mutex_);
  --pending_;
  rejection_delayed_ = false;
  Advance(std::move(lock));
}

// The client cancelled or disconnected, the deadline passed, or the call ended.
void ServerCall::Done(bool) {
  Lock lock(mutex_);
  --pending_;
  done_ = true;
  if (context_.IsCancelled()) {
    cancelled_.store(true, std::memory_order_relaxed);
    if (rejection_delayed_) rejection_alarm_.Cancel();
    OnCancelled();
  }
  Advance(std::move(lock));
}

void ServerCall::FinishIfPossible() {
  if (finishing_ || !end_status_ || rejection_delayed_ || !MayFinish()) return;
  finishing_ = true;
  finish_start_ = Clock::now();
  ++pending_;
  try {
    MarkAsServed(&context_);
    if (!end_status_->ok()) request_id_.Return(&context_);
    if (!reported_at_end_) Report(*end_status_);
  } catch (const std::bad_alloc&) {
    // A call that found no memory is answered by its status, with whatever else there is room for.
  }
  if (last_message_.Valid()) {
    stream_.WriteAndFinish(last_message_, {}, *end_status_, &finished_tag_);
    last_message_.Clear();
  } else {
    stream_.Finish(*end_status_, &finished_tag_);
  }
}

void ServerCall::Finished(bool) {
  Lock lock(mutex_);
  --pending_;
  Advance(std::move(lock));
}

void ServerCall::Advance(Lock lock) {
  if (!begun_ || !Continue(&lock)) return;
  FinishIfPossible();
  if (!finishing_ || pending_ > 0) return;
  lock.unlock();
  if (reported_at_end_) Report(StatusAtEnd());
  AtEnd();
  method_->Remove(this);
  if (counted_) services().in_flight_calls->Leave();
  Delete();
}

void ServerCall::Parse(size_t bytes, void (*parse)(void* call)) {
  const bool is_long = static_cast<int64_t>(bytes) >= kLongMessage_bytes;
  if (!is_long || services().long_messages == nullptr) return parse(this);
  services().long_messages->Push(account_.get(), {parse, this});
}

void ServerCall::Report(const grpc::Status& status) {
  if (services().observer == nullptr) return;
  const std::chrono::duration<double> took = Clock::now() - arrival_;
  services().observer->CallEnded({.method = *method_->description().reported_as,
                                  .code = status.error_code(),
                                  .message = status.error_message(),
                                  .duration_s = took.count(),
                                  .context = &context_,
                                  .id = &request_id_,
                                  .account = account_.get(),
                                  .trace = trace_.get()},
                                 request_bytes_);
}

void ServerCall::Delete() {
  InFlightCalls* const in_flight_calls = services().in_flight_calls;
  delete this;
  in_flight_calls->EndOnQueue();
}

}  // namespace sap
