// Unary calls on gRPC completion queues: accept loop and the state machine of each call.
//
//   Await -> accepted -> read -> handler ... Finish -> finished --+
//                     \-> rejected, at once or delayed ----------/|
//                      \-> done (cancelled or not) ---------------+-> object returns to the pool
//
// An accepted call is replaced by a new awaited one before its message is read, so the number of
// awaited calls per queue is constant. A sweep cancels calls whose message does not arrive or whose
// answer is not taken in time.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "server/auth/authenticator.h"
#include "server/ops/call_observer.h"
#include "server/ops/request_id.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/in_flight_calls.h"
#include "server/rpc/message_transfers.h"
#include "server/rpc/rejection_rate_limiter.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/stall_timer.h"
#include "server/service/request_handler.h"
#include "solver/engine/object_pool.h"

namespace sap {

// The call's deadline on the steady clock.
inline CallContext::Clock::time_point SteadyDeadline(const grpc::ServerContext& context) {
  // A deadline more than a year ahead counts as none; the difference of the clocks must not
  // overflow.
  constexpr std::chrono::hours kNever{24 * 366};
  const auto left = context.deadline() - std::chrono::system_clock::now();
  if (context.deadline() == std::chrono::system_clock::time_point::max() || left > kNever) {
    return CallContext::Clock::time_point::max();
  }
  return CallContext::Clock::now() + left;
}

// Priority from the header sap-priority, which is known before the message is read. High priority
// must be in the header, too, to pass admission where normal calls are rejected.
inline Priority PriorityInHeaders(const grpc::ServerContext& context) {
  const auto header = context.client_metadata().find("sap-priority");
  const bool high = header != context.client_metadata().end() && header->second == "high";
  return high ? Priority::kHigh : Priority::kNormal;
}

// A client says in sap-attempt that a call was lost before, with the servers that had it. A third
// server is not given what may have ended two.
inline ServiceStatus CheckAttempt(const grpc::ServerContext& context) {
  const auto header = context.client_metadata().find("sap-attempt");
  if (header == context.client_metadata().end()) return {};
  if (header->second == "1" || header->second == "2") return {};
  return tl::unexpected(ServiceError{ServiceCode::kFailedPrecondition,
                                     "this call was lost with two servers; it may have ended them",
                                     "", "ATTEMPTS"});
}

// The status of a call whose message was not received, once its end is known.
inline grpc::Status NotReceived(const grpc::ServerContext& context) {
  if (!context.IsCancelled()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the call has no message"};
  }
  if (context.deadline() <= std::chrono::system_clock::now()) {
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "the deadline passed before the message arrived"};
  }
  return {grpc::StatusCode::CANCELLED,
          "the client cancelled the call, or its message is too large or did not arrive in time"};
}

// Parses the bytes of a message and frees them. False: they are no message.
template <typename Message>
bool ParseMessage(grpc::ByteBuffer* bytes, Message* message) {
  return grpc::SerializationTraits<Message>::Deserialize(bytes, message).ok();
}

inline grpc::Status NoMessage() {
  return {grpc::StatusCode::INVALID_ARGUMENT, "the bytes are not a message of this method"};
}

// One method of a service. Must outlive the completion queues on which it awaits calls.
template <typename Service, typename Request, typename Response>
class UnaryMethod {
 public:
  class Call;
  using HeadersFirst = HeadersFirstService<Service>;
  // Handles a call. Must call Finish once, during the handler or later, on any thread.
  using Handler = std::function<void(Call*)>;

  // Behaviour while the server drains. Answered calls do no solver work and do not delay the
  // shutdown.
  enum class WhileDraining : uint8_t { kRefused, kAnswered };

  // Observer of the method's calls, and the method it reports them as. Null: not observed.
  struct Observed {
    const CallObserver* observer{nullptr};
    Method method{};
  };

  // Limits of the calls. A null member: that limit does not apply.
  struct Gate {
    RequestHandler* handler{nullptr};                  // admission before the message is read
    RejectionRateLimiter* rejection_limiter{nullptr};  // delays of rejections
    MessageTransfers* transfers{nullptr};              // messages being received or sent
    bool reserves{true};  // false: the handler limits the rate of calls only
  };

  // `index` is the method's position in the schema. Without an authenticator (null) every client
  // may call.
  UnaryMethod(HeadersFirst* service, int index, Handler handler, InFlightCalls* in_flight_calls,
              const Authenticator* authenticator,
              WhileDraining while_draining = WhileDraining::kRefused, Observed observed = {},
              Gate gate = {})
      : service_(service),
        index_(index),
        handler_(std::move(handler)),
        in_flight_calls_(in_flight_calls),
        authenticator_(authenticator),
        while_draining_(while_draining),
        observed_(observed),
        gate_(gate) {}

  // Requests a call on the queue. Each accepted call requests the next one.
  void Await(grpc::ServerCompletionQueue* queue) {
    std::unique_ptr<Call> call = idle_.Take();
    if (call == nullptr) call = std::make_unique<Call>(this);
    call.release()->Await(queue);
  }

  // Cancels calls whose message or answer takes longer than this; call periodically.
  void Sweep(std::chrono::duration<double> read_timeout,
             std::chrono::duration<double> write_timeout) {
    const auto now = CallContext::Clock::now();
    const auto before = [now](std::chrono::duration<double> timeout) {
      return now - std::chrono::duration_cast<CallContext::Clock::duration>(timeout);
    };
    const std::lock_guard lock(mutex_);
    for (Call* call : calls_) call->Sweep(before(read_timeout), before(write_timeout));
  }

 private:
  // Bounds the memory of call objects after a burst.
  static constexpr size_t kMaxIdle = 32;

  HeadersFirst* const service_;
  const int index_;
  const Handler handler_;
  InFlightCalls* const in_flight_calls_;
  const Authenticator* const authenticator_;
  const WhileDraining while_draining_;
  const Observed observed_;
  const Gate gate_;

  std::mutex mutex_;
  std::set<Call*> calls_;  // all existing ones, pooled ones included

  ObjectPool<Call> idle_{kMaxIdle};  // destroyed first: calls remove themselves from calls_
};

template <typename Service, typename RequestMessage, typename ResponseMessage>
class UnaryMethod<Service, RequestMessage, ResponseMessage>::Call final
    : private MessageTransfers::Reader {
 public:
  using Request = RequestMessage;
  using Response = ResponseMessage;

  explicit Call(UnaryMethod* method) : method_(method) {
    const std::lock_guard lock(method_->mutex_);
    method_->calls_.insert(this);
  }
  ~Call() {
    const std::lock_guard lock(method_->mutex_);
    method_->calls_.erase(this);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Request& request() const { return request_; }
  Response* response() { return &response_; }
  CallContext call_context() const { return {{arrival_, deadline_, &cancelled_}, account_.get()}; }

  // Sends the response or the error, and frees the messages. Call once; do not use the call
  // afterwards.
  void Finish(const grpc::Status& status) {
    MarkAsServed(&*context_);
    if (!status.ok()) request_id_.Return(&*context_);
    if (!not_received_) Report(status);
    // The sent bytes are a copy, so the messages need not wait until the client has taken them.
    const Request request = std::move(request_);
    const Response response = std::move(response_);
    if (method_->gate_.transfers != nullptr && request_bytes_ > 0) {
      answering_ = true;
      if (status.ok()) {
        held_bytes_ = std::max(request_bytes_, static_cast<int64_t>(response.ByteSizeLong()));
      }
      method_->gate_.transfers->BeginAnswer(account_.get(), held_bytes_);
    }
    sending_.Start(CallContext::Clock::now());
    if (status.ok()) {
      stream_->WriteAndFinish(response, {}, status, &finished_tag_);
    } else {
      stream_->Finish(status, &finished_tag_);
    }
  }

 private:
  friend class UnaryMethod;

  void Await(grpc::ServerCompletionQueue* queue) {
    method_->in_flight_calls_->BeginOnQueue();
    queue_ = queue;
    cancelled_ = false;
    delayed_rejection_.Reset();
    counted_ = false;
    not_received_ = false;
    answering_ = false;
    request_bytes_ = 0;
    open_tags_ = 2;
    context_.emplace();
    stream_.emplace(&*context_);
    context_->AsyncNotifyWhenDone(&done_tag_);
    method_->service_->Request(method_->index_, &*context_, &*stream_, queue, &accepted_tag_);
  }

  void Accepted(bool ok) {
    if (!ok) {  // shutting down: the done tag will not complete
      InFlightCalls* const in_flight_calls = method_->in_flight_calls_;
      delete this;
      in_flight_calls->EndOnQueue();
      return;
    }
    method_->Await(queue_);
    arrival_ = CallContext::Clock::now();
    deadline_ = SteadyDeadline(*context_);
    if (method_->observed_.observer != nullptr) {
      method_->observed_.observer->Started(method_->observed_.method);
    }
    if (method_->authenticator_ != nullptr) {
      auto account = method_->authenticator_->Identify(*context_);
      if (!account) return Reject(ToRpcStatus(tl::unexpected(account.error())));
      account_ = std::move(*account);
    }
    // After strangers are rejected: a drain does not wait for them.
    counted_ = method_->while_draining_ == WhileDraining::kRefused;
    if (counted_ && !method_->in_flight_calls_->Enter()) return Finish(ShuttingDown());
    if (const ServiceStatus admitted = Admit(); !admitted) return Reject(ToRpcStatus(admitted));
    BeginRead();
  }

  ServiceStatus Admit() {
    RequestHandler* const handler = method_->gate_.handler;
    if (handler == nullptr) return {};
    if (ServiceStatus checked = CheckAttempt(*context_); !checked) return checked;
    if (!method_->gate_.reserves) return handler->CheckRate(account_.get());
    return handler->ReserveCall(account_.get(), PriorityInHeaders(*context_))
        .map(
            [this](const RequestHandler::Reservation& reservation) { reservation_ = reservation; });
  }

  void BeginRead() {
    MessageTransfers* const transfers = method_->gate_.transfers;
    if (transfers == nullptr) return PostRead();
    const ServiceStatus begun = transfers->BeginRead(account_.get(), this);
    if (begun) return;
    if (method_->gate_.handler != nullptr) method_->gate_.handler->CountRefusal(begun.error());
    ReleaseReservation();
    Reject(ToRpcStatus(begun));
  }

  void PostRead() override {
    receiving_.Start(CallContext::Clock::now());
    stream_->Read(&bytes_, &read_tag_);
  }

  void Read(bool ok) {
    receiving_.Stop();
    if (method_->gate_.transfers != nullptr) method_->gate_.transfers->EndRead(account_.get());
    ReleaseReservation();
    arrival_ = CallContext::Clock::now();
    if (!ok) {
      not_received_ = true;
      return Finish(NotReceived(*context_));
    }
    request_bytes_ = held_bytes_ = static_cast<int64_t>(bytes_.Length());
    if (!ParseMessage(&bytes_, &request_)) return Finish(NoMessage());
    method_->handler_(this);
  }

  void ReleaseReservation() {
    if (method_->gate_.handler == nullptr || !method_->gate_.reserves) return;
    method_->gate_.handler->ReleaseReservation(account_.get(), reservation_);
  }

  // Sends the rejection at once, or delayed if the rate is exceeded.
  void Reject(const grpc::Status& status) {
    rejection_ = status;
    RejectionRateLimiter* const limiter = method_->gate_.rejection_limiter;
    const bool delayed = limiter != nullptr &&
                         delayed_rejection_.Delay(limiter, account_.get(), queue_, &rejection_tag_);
    if (!delayed) SendRejection(true);
  }

  void SendRejection(bool) { Finish(rejection_); }

  void Done(bool) {
    if (context_->IsCancelled()) {
      cancelled_.store(true, std::memory_order_relaxed);
      delayed_rejection_.Cancel();
      if (method_->gate_.transfers != nullptr) method_->gate_.transfers->Expedite(this);
    }
    TagCompleted();
  }

  void Finished(bool) {
    sending_.Stop();
    if (answering_) method_->gate_.transfers->EndAnswer(account_.get(), held_bytes_);
    TagCompleted();
  }

  // The finished and done tags may complete on two threads, in any order; the second one recycles
  // the call.
  void TagCompleted() {
    if (--open_tags_ > 0) return;
    if (not_received_) Report(NotReceived(*context_));
    stream_.reset();
    context_.reset();
    account_.reset();
    request_id_.Clear();
    bytes_.Clear();
    InFlightCalls* const in_flight_calls = method_->in_flight_calls_;
    const bool counted = counted_;
    method_->idle_.Give(std::unique_ptr<Call>(this));
    if (counted) in_flight_calls->Leave();
    in_flight_calls->EndOnQueue();
  }

  void Report(const grpc::Status& status) {
    const Observed& observed = method_->observed_;
    if (observed.observer == nullptr) return;
    const std::chrono::duration<double> took = CallContext::Clock::now() - arrival_;
    observed.observer->Ended(observed.method, status, took.count(), *context_, &request_id_,
                             account_.get(), request_bytes_);
  }

  // After TryCancel the operation completes with an error, and the call ends as if the client had
  // cancelled it.
  void Sweep(CallContext::Clock::time_point read_limit,
             CallContext::Clock::time_point write_limit) {
    receiving_.CancelIfStartedBy(read_limit, [this] { context_->TryCancel(); });
    sending_.CancelIfStartedBy(write_limit, [this] { context_->TryCancel(); });
  }

  UnaryMethod* const method_;
  grpc::ServerCompletionQueue* queue_{nullptr};
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncReaderWriter<Response, grpc::ByteBuffer>> stream_;
  std::shared_ptr<ClientAccount> account_;
  RequestId request_id_;
  grpc::ByteBuffer bytes_;  // of the request, until they are parsed
  Request request_;
  Response response_;
  int64_t request_bytes_{0};
  int64_t held_bytes_{0};  // while the answer is not taken: of request or answer, the larger
  StallTimer receiving_;
  StallTimer sending_;
  CallContext::Clock::time_point arrival_;
  CallContext::Clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};
  bool counted_{false};       // counted in InFlightCalls
  bool not_received_{false};  // reported at the end of the call, when it is known why
  bool answering_{false};     // between BeginAnswer and EndAnswer
  std::atomic<int> open_tags_{0};
  RequestHandler::Reservation reservation_;
  grpc::Status rejection_;
  DelayedRejection delayed_rejection_;

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> rejection_tag_{this, &Call::SendRejection};
  MemberTag<Call> done_tag_{this, &Call::Done};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

}  // namespace sap
