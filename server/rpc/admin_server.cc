#include "server/rpc/admin_server.h"

#include <sys/stat.h>

#include <chrono>
#include <optional>
#include <utility>

#include "server/listen_address.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/server_options.h"

namespace sap {
namespace {

// Method indices in the schema.
constexpr int kDrain = 0;
constexpr int kSetLogLevel = 1;
constexpr int kSetRecording = 2;

// Longer than answers of a few bytes take, unless the client does not read.
constexpr std::chrono::seconds kLastAnswer{1};

// New files, such as the socket, are their owner's alone while the object exists: a later chmod
// would leave a time in which others can connect.
class OwnerOnlyFiles {
 public:
  OwnerOnlyFiles() : before_(umask(S_IRWXG | S_IRWXO)) {}
  ~OwnerOnlyFiles() { umask(before_); }
  OwnerOnlyFiles(const OwnerOnlyFiles&) = delete;
  OwnerOnlyFiles& operator=(const OwnerOnlyFiles&) = delete;

 private:
  const mode_t before_;
};

// Everything that connections to this address hold in the transport.
constexpr size_t kMaxMemory_bytes = 64 << 20;
constexpr int kMaxRequest_bytes = 64 << 10;
constexpr int kMaxStreams = 32;
constexpr int kHandshakeTimeout_ms = 10'000;

void SetOptions(grpc::ServerBuilder* builder) {
  SetCommonOptions(builder);
  builder->SetMaxReceiveMessageSize(kMaxRequest_bytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeout_ms);
  builder->SetResourceQuota(grpc::ResourceQuota("sap-admin").Resize(kMaxMemory_bytes));
}

std::optional<LogLevel> ToLogLevel(v1::LogLevel level) {
  switch (level) {
    case v1::LOG_LEVEL_DEBUG:
      return LogLevel::kDebug;
    case v1::LOG_LEVEL_INFO:
      return LogLevel::kInfo;
    case v1::LOG_LEVEL_WARNING:
      return LogLevel::kWarning;
    case v1::LOG_LEVEL_ERROR:
      return LogLevel::kError;
    default:
      return std::nullopt;
  }
}

}  // namespace

AdminServer::AdminServer(Subjects subjects)
    : subjects_(std::move(subjects)),
      admission_(AdmissionConfig(), 1),
      authenticator_(&admission_, subjects_.tokens),
      drain_(Describe(kDrain), [this](DrainMethod::Call* call) { Drain(call); }),
      log_level_(Describe(kSetLogLevel), [this](LogMethod::Call* call) { SetLogLevel(call); }),
      recording_(Describe(kSetRecording),
                 [this](RecordingMethod::Call* call) { SetRecording(call); }) {}

RpcMethod::Description AdminServer::Describe(int index) {
  return {
      &service_, index, {.in_flight_calls = &in_flight_calls_, .authenticator = &authenticator_}};
}

tl::expected<std::unique_ptr<AdminServer>, std::string> AdminServer::Start(
    const std::string& address, const ServerCertificates* certificates, Subjects subjects) {
  auto claim = AddressClaim::Make(address);
  if (!claim) return tl::unexpected("cannot listen on " + address + ": " + claim.error());
  std::unique_ptr<AdminServer> self(new AdminServer(std::move(subjects)));
  self->claim_ = std::move(*claim);
  grpc::ServerBuilder builder;
  SetOptions(&builder);
  if (self->subjects_.tokens != nullptr) RemoveReflection(&builder);
  int port = 0;
  builder.AddListeningPort(address, MakeServerCredentials(certificates), &port);
  builder.RegisterService(&self->service_);
  builder.RegisterAsyncGenericService(self->unknown_methods_.service());
  self->queue_ = builder.AddCompletionQueue();
  {
    const OwnerOnlyFiles owner_only;
    self->server_ = builder.BuildAndStart();
  }
  if (self->server_ == nullptr || port == 0) {
    return tl::unexpected("cannot listen on " + address +
                          ": the address is in use or does not belong to this machine");
  }
  self->address_ = WithPort(address, port);
  self->drain_.Await(self->queue_.get());
  self->log_level_.Await(self->queue_.get());
  self->recording_.Await(self->queue_.get());
  self->unknown_methods_.Await(self->queue_.get(), 1);
  self->thread_ = std::thread(ServeQueue, self->queue_.get());
  return self;
}

AdminServer::~AdminServer() {
  // Shutdown cancels calls, and the one that asked for the drain may not have been answered yet.
  const auto until = std::chrono::steady_clock::now() + kLastAnswer;
  while (in_flight_calls_.count() > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  while (in_flight_calls_.on_queue() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (queue_ == nullptr) return;
  queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    ServeQueue(queue_.get());
  }
}

void AdminServer::Drain(DrainMethod::Call* call) {
  subjects_.log->Message(LogLevel::kInfo, "drain requested by an operator");
  subjects_.drain();
  call->Finish(grpc::Status::OK);
}

void AdminServer::SetLogLevel(LogMethod::Call* call) {
  const auto level = ToLogLevel(call->request().level());
  if (!level) return call->Finish(ToRpcStatus(RefuseField("level", "is not a log level")));
  subjects_.log->SetLevel(*level);
  call->Finish(grpc::Status::OK);
}

void AdminServer::SetRecording(RecordingMethod::Call* call) {
  if (call->request().directory().empty()) {
    call->response()->set_path(subjects_.recorder->End());
    return call->Finish(grpc::Status::OK);
  }
  RecordingConfig config = subjects_.recording;
  config.directory = call->request().directory();
  const auto path = subjects_.recorder->Begin(config);
  if (!path) return call->Finish({grpc::StatusCode::FAILED_PRECONDITION, path.error()});
  call->response()->set_path(*path);
  call->Finish(grpc::Status::OK);
}

}  // namespace sap
