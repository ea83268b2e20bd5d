#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "client/cpp/transport/call_completions.h"
#include "client/cpp/transport/channel.h"
#include "client/cpp/transport/grpc_call.h"
#include "client/cpp/transport/grpc_session.h"
#include "client/cpp/transport/loss.h"
#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/pending_problems.h"
#include "client/cpp/transport/retry.h"
#include "client/cpp/transport/server_identity.h"
#include "client/cpp/transport/transport.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {
namespace {

using std::chrono::nanoseconds;
using std::chrono::system_clock;

// Admission is decided on the headers, before the server reads the message.
void SetPriority(bool high, grpc::ClientContext* context) {
  if (high) context->AddMetadata("sap-priority", "high");
}

template <typename Request>
bool IsHigh(const Request& request) {
  return request.options().priority() == v1::PRIORITY_HIGH;
}

bool IsHigh(const v1::GetServerInfoRequest&) { return false; }

bool IsHigh(const v1::DifferentiateBatchRequest& batch) {
  return std::ranges::all_of(batch.requests(), [](const auto& request) { return IsHigh(request); });
}

class GrpcTransport final : public Transport {
 public:
  GrpcTransport(Channel channel, const ConnectOptions& options)
      : channel_(std::move(channel.channel)),
        start_(std::move(channel.authorization)),
        low_latency_(options.low_latency),
        reconnect_within_(std::min<nanoseconds>(options.reconnect_within, kLongestTime)),
        build_check_(std::make_shared<BuildCheck>(options.allow_mixed_servers)),
        solver_(v1::SolverService::NewStub(channel_)),
        health_(grpc::health::v1::Health::NewStub(channel_)) {}

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
    Retry retry(channel_.get(), reconnect_within_, deadline);
    PendingProblems pending(request);
    while (true) {
      Status status = StreamPending(&pending, &retry, sink);
      if (status && !pending.empty()) {
        return tl::unexpected(Error{ErrorCode::kInternal,
                                    "the batch has ended without an outcome for each problem", ""});
      }
      if (status || !IsLoss(status.error(), CallKind::kCall)) return status;
      if (pending.empty()) return {};
      if (!retry.After(&status.error())) return status;
      pending.Narrow();
    }
  }

  tl::expected<std::unique_ptr<SessionStream>, Error> OpenSession(
      const v1::SolveSessionRequest& request, Timeout deadline) override {
    return OpenGrpcSession({solver_, start_, build_check_, reconnect_within_}, request, deadline);
  }

  Status Info(Timeout deadline, v1::GetServerInfoResponse* response) override {
    return Call(&v1::SolverService::Stub::AsyncGetServerInfo, v1::GetServerInfoRequest(),
                std::min<nanoseconds>(deadline.value_or(kQuickCall), kQuickCall), response);
  }

  // One attempt: the answer is about the server as it is now.
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
    Retry retry(channel_.get(), reconnect_within_, deadline);
    while (true) {
      Status status = Attempt(start, request, retry, response);
      if (status || !retry.After(&status.error())) return status;
    }
  }

  template <typename Request, typename Response>
  Status Attempt(StartCall<Request, Response> start, const Request& request, const Retry& retry,
                 Response* response) {
    grpc::ClientContext context;
    start_.Prepare(retry.left(), &context, retry.lost_attempts());
    SetPriority(IsHigh(request), &context);
    CallCompletions completions(low_latency_);
    const auto call = (*solver_.*start)(&context, request, completions.get());
    grpc::Status status;
    call->Finish(response, &status, completions.tag());
    completions.Await();
    return Checked(status, context);
  }

  // One attempt to get the pending outcomes.
  Status StreamPending(PendingProblems* pending, Retry* retry, const BatchSink& sink) {
    grpc::ClientContext context;
    start_.Prepare(retry->left(), &context, retry->lost_attempts());
    SetPriority(IsHigh(pending->request()), &context);
    const size_t half = pending->size() / 2;
    const auto stream = solver_->StreamBatch(&context, pending->request());
    v1::StreamBatchResponse response;
    bool is_checked = false;
    while (stream->Read(&response)) {
      if (!is_checked) {
        // The end of the stream would be too late for outcomes that should not be seen.
        Status same = build_check_->Check(IdentityIn(context.GetServerInitialMetadata()));
        if (!same) {
          context.TryCancel();
          stream->Finish();
          return same;
        }
        is_checked = true;
      }
      const auto index = pending->Take(response.index());
      if (!index) continue;  // the server breaks the contract
      retry->Restart();
      // A problem that ends servers thus ends as many as a batch can be halved, and no more.
      if (pending->size() <= half) retry->ForgetLostAttempts();
      response.set_index(*index);
      sink(response);
    }
    return Checked(stream->Finish(), context);
  }

  Status Checked(const grpc::Status& status, const grpc::ClientContext& context) {
    if (!status.ok()) return tl::unexpected(ToError(status, context));
    return build_check_->Check(IdentityIn(context.GetServerTrailingMetadata()));
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const CallStart start_;
  const bool low_latency_;
  const nanoseconds reconnect_within_;
  const std::shared_ptr<BuildCheck> build_check_;
  const std::shared_ptr<v1::SolverService::Stub> solver_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

// Time to find out why no server of several is used.
constexpr std::chrono::seconds kExplanation{1};

// What keeps calls from servers that can be reached: their health service; empty if that does not.
std::string Explain(const Address& address, const Credentials& credentials) {
  const auto channel = MakeChannel(address, credentials, Servers::kAny);
  const auto until = system_clock::now() + kExplanation;
  if (!address.is_balanced() || !channel || !channel->channel->WaitForConnected(until)) return "";
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(v1::SolverService::service_full_name());
  grpc::health::v1::HealthCheckResponse response;
  grpc::ClientContext context;
  context.set_deadline(until);
  const auto watch = grpc::health::v1::Health::NewStub(channel->channel)->Watch(&context, request);
  if (watch->Read(&response)) {
    context.TryCancel();
    watch->Finish();
    if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) return "";
    return "; health: " + response.ServingStatus_Name(response.status());
  }
  const grpc::Status status = watch->Finish();
  return std::string("; health: ") + Name(FromCode(status.error_code())) + " " +
         status.error_message();
}

}  // namespace

tl::expected<std::unique_ptr<Transport>, Error> ConnectByGrpc(const std::string& address,
                                                              const ConnectOptions& options) {
  const auto parsed = ParseAddress(address);
  if (!parsed) return tl::unexpected(parsed.error());
  auto channel = MakeChannel(*parsed, options.credentials);
  if (!channel) return tl::unexpected(channel.error());
  const auto timeout = std::min<nanoseconds>(options.connect_timeout, kLongestTime);
  const auto until =
      system_clock::now() + std::chrono::duration_cast<system_clock::duration>(timeout);
  if (!channel->channel->WaitForConnected(until)) {
    return tl::unexpected(
        Error{ErrorCode::kUnavailable,
              "no server answers at " + address + Explain(*parsed, options.credentials), ""});
  }
  return std::make_unique<GrpcTransport>(std::move(*channel), options);
}

}  // namespace sap::client
