#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "client/cpp/transport/call_completions.h"
#include "client/cpp/transport/channel.h"
#include "client/cpp/transport/grpc_call.h"
#include "client/cpp/transport/grpc_session.h"
#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/transport.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {
namespace {

using std::chrono::system_clock;

// Admission is decided on the headers, before the server reads the message.
void SetPriority(bool high, grpc::ClientContext* context) {
  if (high) context->AddMetadata("sap-priority", "high");
}

template <typename Request>
bool IsHigh(const Request& request) {
  return request.options().priority() == v1::PRIORITY_HIGH;
}

bool IsHigh(const v1::DifferentiateBatchRequest& batch) {
  return std::ranges::all_of(batch.requests(), [](const auto& request) { return IsHigh(request); });
}

class GrpcTransport final : public Transport {
 public:
  GrpcTransport(Channel channel, const ConnectOptions& options)
      : start_(std::move(channel.authorization)),
        low_latency_(options.low_latency),
        reconnect_within_(options.reconnect_within),
        solver_(v1::SolverService::NewStub(channel.channel)),
        health_(grpc::health::v1::Health::NewStub(channel.channel)) {}

  Status Solve(const v1::SolveRequest& request, Timeout deadline,
               v1::SolveResponse* response) override {
    return Call(&v1::SolverService::Stub::AsyncSolve, request, deadline, response);
  }

  Status SolveBatch(const v1::SolveBatchRequest& request, Timeout deadline,
                    v1::SolveBatchResponse* response) override {
    return Call(&v1::SolverService::Stub::AsyncSolveBatch, request, deadline, response);
  }

  Status Differentiate(const v1::DifferentiateRequest& request, Timeout deadline,
                       v1::DifferentiateResponse* response) override {
    return Call(&v1::SolverService::Stub::AsyncDifferentiate, request, deadline, response);
  }

  Status DifferentiateBatch(const v1::DifferentiateBatchRequest& request, Timeout deadline,
                            v1::DifferentiateBatchResponse* response) override {
    return Call(&v1::SolverService::Stub::AsyncDifferentiateBatch, request, deadline, response);
  }

  Status StreamBatch(const v1::StreamBatchRequest& request, Timeout deadline,
                     const BatchSink& sink) override {
    grpc::ClientContext context;
    start_.Prepare(deadline, &context);
    SetPriority(IsHigh(request), &context);
    const auto stream = solver_->StreamBatch(&context, request);
    v1::StreamBatchResponse response;
    while (stream->Read(&response)) sink(response);
    return FromRpcStatus(stream->Finish(), context);
  }

  tl::expected<std::unique_ptr<SessionStream>, Error> OpenSession(
      const v1::SolveSessionRequest& request, Timeout deadline) override {
    return OpenGrpcSession(solver_, start_, request, deadline, reconnect_within_);
  }

  Status Info(v1::GetServerInfoResponse* response) override {
    grpc::ClientContext context;
    start_.Prepare(kQuickCall, &context);
    const grpc::Status status = solver_->GetServerInfo(&context, {}, response);
    return FromRpcStatus(status, context);
  }

  tl::expected<bool, Error> Health() override {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(v1::SolverService::service_full_name());
    grpc::health::v1::HealthCheckResponse response;
    grpc::ClientContext context;
    start_.Prepare(kQuickCall, &context);
    const grpc::Status status = health_->Check(&context, request, &response);
    if (!status.ok()) return tl::unexpected(ToError(status, context));
    return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }

 private:
  // Deadline of calls that do no work.
  static constexpr std::chrono::seconds kQuickCall{5};

  // Starts a unary call and waits for its answer.
  template <typename Request, typename Response>
  using StartCall = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (
      v1::SolverService::Stub::*)(grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

  template <typename Request, typename Response>
  Status Call(StartCall<Request, Response> start, const Request& request, Timeout deadline,
              Response* response) {
    grpc::ClientContext context;
    start_.Prepare(deadline, &context);
    SetPriority(IsHigh(request), &context);
    CallCompletions completions(low_latency_);
    const auto call = (*solver_.*start)(&context, request, completions.get());
    grpc::Status status;
    call->Finish(response, &status, completions.tag());
    completions.Await();
    return FromRpcStatus(status, context);
  }

  const CallStart start_;
  const bool low_latency_;
  const std::chrono::nanoseconds reconnect_within_;
  const std::shared_ptr<v1::SolverService::Stub> solver_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace

tl::expected<std::unique_ptr<Transport>, Error> ConnectByGrpc(const std::string& address,
                                                              const ConnectOptions& options) {
  auto channel = MakeChannel(address, options.credentials);
  if (!channel) return tl::unexpected(channel.error());
  const auto until = system_clock::now() +
                     std::chrono::duration_cast<system_clock::duration>(options.connect_timeout);
  if (!channel->channel->WaitForConnected(until)) {
    return tl::unexpected(Error{ErrorCode::kUnavailable, "no server answers at " + address, ""});
  }
  return std::make_unique<GrpcTransport>(std::move(*channel), options);
}

}  // namespace sap::client
