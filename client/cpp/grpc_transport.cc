#include <grpcpp/grpcpp.h>

#include "client/cpp/transport.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "sap/v1/solver_service.grpc.pb.h"

namespace sap::client {
namespace {

using std::chrono::system_clock;

ErrorCode FromRpcCode(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return ErrorCode::kInvalidArgument;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return ErrorCode::kResourceExhausted;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kDeadlineExceeded;
    case grpc::StatusCode::CANCELLED:
      return ErrorCode::kCancelled;
    case grpc::StatusCode::UNAVAILABLE:
      return ErrorCode::kUnavailable;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::kUnimplemented;
    default:
      return ErrorCode::kInternal;
  }
}

// The field at fault, from google.rpc.BadRequest in the details of the status.
std::string FieldOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return "";
  for (const auto& detail : details.details()) {
    google::rpc::BadRequest bad_request;
    if (detail.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
      return bad_request.field_violations(0).field();
    }
  }
  return "";
}

Transport::Status FromRpcStatus(const grpc::Status& status) {
  if (status.ok()) return {};
  return tl::unexpected(
      Error{FromRpcCode(status.error_code()), status.error_message(), FieldOf(status)});
}

void SetDeadline(Transport::Timeout timeout, grpc::ClientContext* context) {
  if (!timeout) return;
  context->set_deadline(system_clock::now() +
                        std::chrono::duration_cast<system_clock::duration>(*timeout));
}

class GrpcTransport final : public Transport {
 public:
  explicit GrpcTransport(const std::shared_ptr<grpc::Channel>& channel)
      : solver_(v1::SolverService::NewStub(channel)),
        health_(grpc::health::v1::Health::NewStub(channel)) {}

  Status Solve(const v1::SolveRequest& request, Timeout deadline,
               v1::SolveResponse* response) override {
    grpc::ClientContext context;
    SetDeadline(deadline, &context);
    return FromRpcStatus(solver_->Solve(&context, request, response));
  }

  Status Info(v1::GetServerInfoResponse* response) override {
    grpc::ClientContext context;
    SetDeadline(kQuickCall, &context);
    return FromRpcStatus(solver_->GetServerInfo(&context, {}, response));
  }

  tl::expected<bool, Error> Health() override {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(v1::SolverService::service_full_name());
    grpc::health::v1::HealthCheckResponse response;
    grpc::ClientContext context;
    SetDeadline(kQuickCall, &context);
    const grpc::Status status = health_->Check(&context, request, &response);
    if (!status.ok()) return tl::unexpected(FromRpcStatus(status).error());
    return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }

 private:
  // Calls that do no work have to be answered within this.
  static constexpr std::chrono::seconds kQuickCall{5};

  std::unique_ptr<v1::SolverService::Stub> solver_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace

tl::expected<std::unique_ptr<Transport>, Error> ConnectByGrpc(
    const std::string& address, std::chrono::nanoseconds connect_timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A server that is just starting is found soon, not after gRPC's first back-off of a second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  const auto until =
      system_clock::now() + std::chrono::duration_cast<system_clock::duration>(connect_timeout);
  if (!channel->WaitForConnected(until)) {
    return tl::unexpected(Error{ErrorCode::kUnavailable, "no server answers at " + address, ""});
  }
  return std::make_unique<GrpcTransport>(channel);
}

}  // namespace sap::client
