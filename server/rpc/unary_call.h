// Unary calls on gRPC completion queues: accepting them, and the life of each.
//
//   Await -> accepted -> read -> handler ... Finish -> finished --+
//                    \-> refused, at once or when it is time ----/|
//                     \-> done (cancelled or not) ---------------+-> its messages serve the next
//                     call
//
// Every call accepted is replaced by a new awaited one before its message is read, so the number
// awaited per queue never falls.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "server/auth/authenticator.h"
#include "server/engine/engine.h"
#include "server/engine/free_list.h"
#include "server/ops/call_observer.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/headers_first_service.h"
#include "server/rpc/in_flight_calls.h"
#include "server/rpc/rejection_rate_limiter.h"
#include "server/rpc/rpc_status.h"

namespace sap {

// The steady time at which a call's deadline passes.
inline CallContext::Clock::time_point SteadyDeadline(const grpc::ServerContext& context) {
  // Beyond a year there is none; the difference of clocks must not overflow.
  constexpr std::chrono::hours kNever{24 * 366};
  const auto left = context.deadline() - std::chrono::system_clock::now();
  if (context.deadline() == std::chrono::system_clock::time_point::max() || left > kNever) {
    return CallContext::Clock::time_point::max();
  }
  return CallContext::Clock::now() + left;
}

// What a client says of its priority before its message is read: one that is high in the message
// too passes where normal ones are refused.
inline Priority PriorityInHeaders(const grpc::ServerContext& context) {
  const auto header = context.client_metadata().find("sap-priority");
  const bool high = header != context.client_metadata().end() && header->second == "high";
  return high ? Priority::kHigh : Priority::kNormal;
}

// One method of one service. Must outlive the completion queues that it awaits calls on.
template <typename Service, typename Request, typename Response>
class UnaryMethod {
 public:
  class Call;
  // Answers the call by calling Finish, now or later, on any thread.
  using Handler = std::function<void(Call*)>;

  // Whether a draining server still answers such calls. They do no work, and nobody waits for them.
  enum class WhileDraining : uint8_t { kRefused, kAnswered };

  // How its calls end is told to the watch, under the name of the method.
  struct Watched {
    const CallObserver* watch{nullptr};
    Method method{};
  };

  // Who refuses calls before their messages are read, and how often; both null: nobody.
  struct AdmissionGate {
    Engine* engine{nullptr};
    RejectionRateLimiter* pace{nullptr};
  };

  // `index` is that of the method in the service. Without callers (null), everyone may call.
  UnaryMethod(HeadersFirstService<Service>* service, int index, Handler handler,
              InFlightCalls* in_flight_calls, const Authenticator* authenticator,
              WhileDraining while_draining = WhileDraining::kRefused, Watched watched = {},
              AdmissionGate door = {})
      : service_(service),
        index_(index),
        handler_(std::move(handler)),
        in_flight_calls_(in_flight_calls),
        authenticator_(authenticator),
        while_draining_(while_draining),
        watched_(watched),
        door_(door) {}

  // Accepts one call on the queue, and then the next ones as they come.
  void Await(grpc::ServerCompletionQueue* queue) {
    std::unique_ptr<Call> call = idle_.Take();
    if (call == nullptr) call = std::make_unique<Call>(this);
    call.release()->Await(queue);
  }

 private:
  // Idle calls keep their messages' storage; more than a burst needs would only hold memory.
  static constexpr size_t kMaxIdle = 32;

  HeadersFirstService<Service>* const service_;
  const int index_;
  const Handler handler_;
  InFlightCalls* const in_flight_calls_;
  const Authenticator* const authenticator_;
  const WhileDraining while_draining_;
  const Watched watched_;
  const AdmissionGate door_;
  FreeList<Call> idle_{kMaxIdle};
};

template <typename Service, typename RequestMessage, typename ResponseMessage>
class UnaryMethod<Service, RequestMessage, ResponseMessage>::Call {
 public:
  using Request = RequestMessage;
  using Response = ResponseMessage;

  explicit Call(UnaryMethod* method) : method_(method) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Request& request() const { return request_; }
  Response* response() { return &response_; }
  CallContext limits() const { return {arrival_, deadline_, &cancelled_, account_.get()}; }

  // Sends the response, or the error. Once per call; nothing of it may be touched afterwards.
  void Finish(const grpc::Status& status) {
    if (const Watched& watched = method_->watched_; watched.watch != nullptr) {
      const std::chrono::duration<double> took = CallContext::Clock::now() - arrival_;
      watched.watch->Ended(watched.method, status, took.count(), *context_, account_.get(),
                           request_);
    }
    if (status.ok()) {
      stream_->WriteAndFinish(response_, {}, status, &finished_tag_);
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
    entered_ = false;
    open_tags_ = 2;
    context_.emplace();
    stream_.emplace(&*context_);
    context_->AsyncNotifyWhenDone(&done_tag_);
    method_->service_->Request(method_->index_, &*context_, &*stream_, queue, &accepted_tag_);
  }

  void Accepted(bool ok) {
    if (!ok) {  // the server shuts down, and the done tag will not come
      InFlightCalls* const in_flight_calls = method_->in_flight_calls_;
      delete this;
      in_flight_calls->EndOnQueue();
      return;
    }
    method_->Await(queue_);
    arrival_ = CallContext::Clock::now();
    deadline_ = SteadyDeadline(*context_);
    if (method_->watched_.watch != nullptr) {
      method_->watched_.watch->Started(method_->watched_.method);
    }
    if (method_->while_draining_ == WhileDraining::kRefused &&
        method_->in_flight_calls_->draining()) {
      return Finish(ShuttingDown());
    }
    if (method_->authenticator_ != nullptr) {
      auto account = method_->authenticator_->Identify(*context_);
      if (!account) return Finish(ToRpcStatus(tl::unexpected(account.error())));
      account_ = std::move(*account);
    }
    if (Engine* const engine = method_->door_.engine; engine != nullptr) {
      auto expected = engine->Expect(account_.get(), PriorityInHeaders(*context_));
      if (!expected) return Refuse(ToRpcStatus(tl::unexpected(expected.error())));
      expected_ = *expected;
    }
    stream_->Read(&request_, &read_tag_);
  }

  void Read(bool ok) {
    if (Engine* const engine = method_->door_.engine; engine != nullptr) {
      engine->Arrived(account_.get(), expected_);
    }
    // Also where it was over the limit: then the transport has ended the call already.
    arrival_ = CallContext::Clock::now();
    entered_ = method_->while_draining_ == WhileDraining::kRefused;
    if (entered_ && !method_->in_flight_calls_->Enter()) return Finish(ShuttingDown());
    if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the message cannot be read"});
    method_->handler_(this);
  }

  // At once, unless too many are refused already.
  void Refuse(const grpc::Status& status) {
    refusal_ = status;
    const auto wait = method_->door_.pace->Wait(CallContext::Clock::now());
    if (wait == wait.zero()) return RefuseNow(true);
    refuse_alarm_.Set(queue_, std::chrono::system_clock::now() + wait, &refuse_tag_);
  }

  void RefuseNow(bool) { Finish(refusal_); }

  void Done(bool) {
    if (context_->IsCancelled()) {
      cancelled_.store(true, std::memory_order_relaxed);
      refuse_alarm_.Cancel();  // nobody waits for the refusal
    }
    CloseTag();
  }

  void Finished(bool) { CloseTag(); }

  // The two last tags may come on two threads, in any order.
  void CloseTag() {
    if (--open_tags_ > 0) return;
    stream_.reset();
    context_.reset();
    account_.reset();
    if (request_.ByteSizeLong() > kKept_bytes) {
      request_ = Request();
    } else {
      request_.Clear();
    }
    response_.Clear();
    InFlightCalls* const in_flight_calls = method_->in_flight_calls_;
    const bool entered = entered_;
    method_->idle_.Give(std::unique_ptr<Call>(this));
    if (entered) in_flight_calls->Leave();
    in_flight_calls->EndOnQueue();
  }

  // Requests larger than this are freed after the call.
  static constexpr size_t kKept_bytes = 4 << 20;

  UnaryMethod* const method_;
  grpc::ServerCompletionQueue* queue_{nullptr};
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncReaderWriter<Response, Request>> stream_;
  std::shared_ptr<ClientAccount> account_;
  Request request_;
  Response response_;
  CallContext::Clock::time_point arrival_;
  CallContext::Clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};
  bool entered_{false};  // counted among the open calls
  std::atomic<int> open_tags_{0};
  Engine::Expected expected_;
  grpc::Status refusal_;
  grpc::Alarm refuse_alarm_;

  MemberTag<Call> accepted_tag_{this, &Call::Accepted};
  MemberTag<Call> read_tag_{this, &Call::Read};
  MemberTag<Call> refuse_tag_{this, &Call::RefuseNow};
  MemberTag<Call> done_tag_{this, &Call::Done};
  MemberTag<Call> finished_tag_{this, &Call::Finished};
};

}  // namespace sap
