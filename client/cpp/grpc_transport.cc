#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "client/cpp/channel.h"
#include "client/cpp/messages.h"
#include "client/cpp/transport.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {
namespace {

using std::chrono::system_clock;

// With what the details of the status say.
Error ToError(const grpc::Status& status) {
  Error error{FromCode(status.error_code()), status.error_message(), ""};
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return error;
  for (const auto& detail : details.details()) {
    google::rpc::BadRequest bad_request;
    google::rpc::ErrorInfo info;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
      error.field = bad_request.field_violations(0).field();
    } else if (detail.UnpackTo(&info)) {
      error.reason = info.reason();
    } else if (detail.UnpackTo(&retry)) {
      error.retry_after = FromMessage(retry.retry_delay());
    }
  }
  return error;
}

Transport::Status FromRpcStatus(const grpc::Status& status) {
  if (status.ok()) return {};
  return tl::unexpected(ToError(status));
}

// What every call begins with.
class CallStart {
 public:
  explicit CallStart(std::string authorization) : authorization_(std::move(authorization)) {}

  void Prepare(Transport::Timeout timeout, grpc::ClientContext* context) const {
    if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
    if (!timeout) return;
    context->set_deadline(system_clock::now() +
                          std::chrono::duration_cast<system_clock::duration>(*timeout));
  }

 private:
  const std::string authorization_;
};

// The context must outlive the stream, and goes with it.
class GrpcSession final : public SessionStream {
 public:
  static tl::expected<std::unique_ptr<SessionStream>, Error> Open(
      v1::SolverService::Stub* stub, const CallStart& start, const v1::SolveSessionRequest& request,
      Transport::Timeout deadline) {
    auto self = std::make_unique<GrpcSession>();
    start.Prepare(deadline, &self->context_);
    self->stream_ = stub->SolveSession(&self->context_);
    v1::SolveSessionResponse response;
    self->stream_->Write(request);  // if it fails, so does the read
    if (!self->stream_->Read(&response)) return tl::unexpected(self->End());
    // A server that says nothing takes at least one.
    self->max_steps_in_flight_ = static_cast<int>(
        std::clamp(response.opened().max_steps_in_flight(), uint32_t{1}, uint32_t{1} << 20));
    return self;
  }

  ~GrpcSession() override {
    if (finished_) return;
    context_.TryCancel();
    stream_->Finish();
  }

  int max_steps_in_flight() const override { return max_steps_in_flight_; }

  bool Send(const v1::SolveSessionRequest& request) override { return stream_->Write(request); }

  Transport::Status Receive(v1::SolveSessionResponse* response) override {
    if (!stream_->Read(response)) return tl::unexpected(End());
    return {};
  }

  Transport::Status Close() override {
    stream_->WritesDone();
    v1::SolveSessionResponse unwanted;
    while (stream_->Read(&unwanted)) {
    }
    return FromRpcStatus(Finish());
  }

 private:
  grpc::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }

  // Why there is no more to read.
  Error End() {
    const grpc::Status status = Finish();
    if (!status.ok()) return FromRpcStatus(status).error();
    return {ErrorCode::kUnavailable, "the server has ended the session", ""};
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SolveSessionRequest, v1::SolveSessionResponse>>
      stream_;
  int max_steps_in_flight_{1};
  bool finished_{false};
};

class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(Channel channel)
      : start_(std::move(channel.authorization)),
        solver_(v1::SolverService::NewStub(channel.channel)),
        health_(grpc::health::v1::Health::NewStub(channel.channel)) {}

  Status Solve(const v1::SolveRequest& request, Timeout deadline,
               v1::SolveResponse* response) override {
    grpc::ClientContext context;
    start_.Prepare(deadline, &context);
    return FromRpcStatus(solver_->Solve(&context, request, response));
  }

  Status SolveBatch(const v1::SolveBatchRequest& request, Timeout deadline,
                    v1::SolveBatchResponse* response) override {
    grpc::ClientContext context;
    start_.Prepare(deadline, &context);
    return FromRpcStatus(solver_->SolveBatch(&context, request, response));
  }

  Status StreamBatch(const v1::StreamBatchRequest& request, Timeout deadline,
                     const BatchSink& sink) override {
    grpc::ClientContext context;
    start_.Prepare(deadline, &context);
    const auto stream = solver_->StreamBatch(&context, request);
    v1::StreamBatchResponse response;
    while (stream->Read(&response)) sink(response);
    return FromRpcStatus(stream->Finish());
  }

  tl::expected<std::unique_ptr<SessionStream>, Error> OpenSession(
      const v1::SolveSessionRequest& request, Timeout deadline) override {
    return GrpcSession::Open(solver_.get(), start_, request, deadline);
  }

  Status Info(v1::GetServerInfoResponse* response) override {
    grpc::ClientContext context;
    start_.Prepare(kQuickCall, &context);
    return FromRpcStatus(solver_->GetServerInfo(&context, {}, response));
  }

  tl::expected<bool, Error> Health() override {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(v1::SolverService::service_full_name());
    grpc::health::v1::HealthCheckResponse response;
    grpc::ClientContext context;
    start_.Prepare(kQuickCall, &context);
    const grpc::Status status = health_->Check(&context, request, &response);
    if (!status.ok()) return tl::unexpected(FromRpcStatus(status).error());
    return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }

 private:
  // Calls that do no work have to be answered within this.
  static constexpr std::chrono::seconds kQuickCall{5};

  const CallStart start_;
  std::unique_ptr<v1::SolverService::Stub> solver_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace

tl::expected<std::unique_ptr<Transport>, Error> ConnectByGrpc(
    const std::string& address, std::chrono::nanoseconds connect_timeout,
    const Credentials& credentials) {
  auto channel = MakeChannel(address, credentials);
  if (!channel) return tl::unexpected(channel.error());
  const auto until =
      system_clock::now() + std::chrono::duration_cast<system_clock::duration>(connect_timeout);
  if (!channel->channel->WaitForConnected(until)) {
    return tl::unexpected(Error{ErrorCode::kUnavailable, "no server answers at " + address, ""});
  }
  return std::make_unique<GrpcTransport>(std::move(*channel));
}

}  // namespace sap::client
