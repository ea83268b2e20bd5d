// Unary calls: one request, one response.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <utility>

#include "server/rpc/request_call.h"

namespace sap {

template <typename Request, typename Response>
class UnaryMethod final : public RpcMethod {
 public:
  class Call;
  // Handles a call. Must call Finish once, during the handler or later, on any thread.
  using Handler = std::function<void(Call*)>;

  UnaryMethod(const Description& description, Handler handler)
      : RpcMethod(description),
        handler_(std::move(handler)),
        bounds_(Request::descriptor(), LimitsOf(description)) {}

  // Requests a call on the queue. Each accepted call requests the next one.
  void Await(grpc::ServerCompletionQueue* queue) { (new Call(this, queue))->Await(); }

 private:
  static EngineLimits LimitsOf(const Description& description) {
    const RequestHandler* const handler = description.context.handler;
    return handler != nullptr ? EngineLimits(handler->config()) : EngineLimits();
  }

  const Handler handler_;
  const MessageBounds bounds_;
};

template <typename RequestMessage, typename ResponseMessage>
class UnaryMethod<RequestMessage, ResponseMessage>::Call final : public RequestCall {
 public:
  using Request = RequestMessage;
  using Response = ResponseMessage;

  Call(UnaryMethod* method, grpc::ServerCompletionQueue* queue)
      : RequestCall(method, queue), method_(method) {}

  const Request& request() const { return request_; }
  // For a handler that takes it apart.
  Request* mutable_request() { return &request_; }
  Response* response() { return &response_; }
  CallContext call_context() const { return SolveContext(arrival_); }

  // Sends the response or the error, and frees the messages. Call once; do not use the call
  // afterwards.
  void Finish(const grpc::Status& status) {
    grpc::ByteBuffer message;
    if (status.ok()) message = Serialize(response_);
    // A call may last until its client has taken the answer, and needs them no longer.
    request_ = {};
    response_ = {};
    const auto bytes = static_cast<int64_t>(message.Length());
    Answer(status, bytes, std::move(message));
  }

 private:
  void AwaitNext() override { method_->Await(queue_); }
  ServiceStatus ParseRequest(grpc::ByteBuffer* bytes) override {
    return ParseMessage(method_->bounds_, bytes, &request_);
  }
  void Handle() override { method_->handler_(this); }

  void CancelIfOverdue(ServerCall::Clock::time_point now) override {
    const std::chrono::duration<double> sending = now - finish_start_;
    if (finishing_ && sending.count() > config().session.write_timeout_s) context_.TryCancel();
    RequestCall::CancelIfOverdue(now);
  }

  UnaryMethod* const method_;
  Request request_;
  Response response_;
};

}  // namespace sap
