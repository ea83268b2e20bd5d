#include "server/rpc/grpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <future>

#include "server/listen_address.h"
#include "server/ops/process_status.h"
#include "server/rpc/server_options.h"
#include "server/service/memory_reserve.h"

namespace sap {
namespace {

// Awaited calls per method, to absorb bursts: of all queues, and at least of each. A call for which
// none is awaited on the queue of its connection goes to another queue, so a connection with many
// calls at a time is served by several threads.
constexpr int kAwaitedCalls = 16;
constexpr int kMinAwaitedCalls = 8;
// The reflection service uses gRPC's synchronous threads, one per open stream.
constexpr int kMaxReflectionThreads = 4;
constexpr std::chrono::milliseconds kDrainPoll{1};
constexpr std::chrono::milliseconds kTurnedAway{100};
// Period of the sweeps of calls, which bounds the precision of session timeouts: a multiple of that
// of transfers.
constexpr int kTransferSweepsPerSweep = 10;
// Connections that send keepalive pings more often than this are closed.
constexpr int kMinClientPingInterval_ms = 5000;

int Milliseconds(double seconds) { return static_cast<int>(std::min(seconds * 1e3, 2e9)); }

// gRPC shuts down with its last object, and a poller that is still finishing a large write can
// delay that by 10 s. Keeping the library initialized until the process exits avoids the delay.
void KeepGrpcInitialized() {
  static const bool initialized = [] {
    grpc_init();
    return true;
  }();
  (void)initialized;
}

void SetOptions(const ServerConfig& config, grpc::ServerBuilder* builder) {
  SetCommonOptions(builder);
  builder->SetMaxReceiveMessageSize(static_cast<int>(config.max_message_bytes));
  builder->SetMaxSendMessageSize(-1);
  const ConnectionConfig& connection = config.connection;
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, connection.max_streams);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, connection.max_header_bytes);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              Milliseconds(connection.handshake_timeout_s));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(connection.idle_s));
  if (connection.age_s > 0) {
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(connection.age_s));
    // A session may be opened just before the connection reaches its age. It is asked to move at
    // its own age, and then has a minute for its step.
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                                Milliseconds(1.2 * connection.age_s + 60));
  }
  // Keepalive detects clients that disappeared, so that their sessions end.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(connection.keepalive_s));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              Milliseconds(connection.keepalive_timeout_s));
  // Keepalive also without calls, in both directions.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinClientPingInterval_ms);
  builder->SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder->SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder->SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  builder->SetResourceQuota(grpc::ResourceQuota("sap-server")
                                .SetMaxThreads(kMaxReflectionThreads)
                                .Resize(static_cast<size_t>(connection.max_memory_bytes)));
}

}  // namespace

GrpcServer::GrpcServer(const ServerConfig& config, RequestHandler* handler, BearerTokens* tokens,
                       const CallObserver& observer, WorldHandler* worlds)
    : handler_(handler),
      authenticator_(&handler->admission(), tokens),
      observer_(observer),
      rejection_limiter_(config.threads),
      transfers_(config),
      long_messages_(config.solver_nice),
      solver_service_({handler, &in_flight_calls_, &authenticator_, &observer_, &rejection_limiter_,
                       &transfers_, &long_messages_, worlds}),
      health_service_(config.connection, &in_flight_calls_, &authenticator_, observer_),
      unknown_methods_(
          &in_flight_calls_, "there is no such method; calls of operators are for --admin-listen",
          {"/" + std::string(v1::WorldService::service_full_name()) + "/", kNoWorlds}) {
  if (worlds == nullptr) return;
  world_service_.emplace(ServiceContext{handler, &in_flight_calls_, &authenticator_, &observer_,
                                        &rejection_limiter_, &transfers_, &long_messages_, worlds});
}

tl::expected<std::unique_ptr<GrpcServer>, std::string> GrpcServer::Start(
    const ServerConfig& config, RequestHandler* handler, BearerTokens* tokens,
    const CallObserver& observer, const ServerCertificates* certificates, WorldHandler* worlds) {
  auto claim = AddressClaim::Make(config.listen);
  if (!claim) return tl::unexpected("cannot listen on " + config.listen + ": " + claim.error());
  KeepGrpcInitialized();
  // The plugin applies to builders constructed after this.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<GrpcServer> self(new GrpcServer(config, handler, tokens, observer, worlds));
  self->claim_ = std::move(*claim);
  grpc::ServerBuilder builder;
  SetOptions(config, &builder);
  if (tokens != nullptr) RemoveReflection(&builder);
  int port = 0;
  builder.AddListeningPort(config.listen, MakeServerCredentials(certificates), &port);
  builder.RegisterService(self->solver_service_.service());
  if (self->world_service_) builder.RegisterService(self->world_service_->service());
  builder.RegisterService(self->health_service_.service());
  builder.RegisterAsyncGenericService(self->unknown_methods_.service());
  // One thread assists the threads of the queues.
  const int num_queues = std::max(1, config.io_threads - 1);
  for (int i = 0; i < num_queues; ++i) self->queues_.push_back(builder.AddCompletionQueue());
  self->server_ = builder.BuildAndStart();
  if (self->server_ == nullptr || port == 0) {
    return tl::unexpected("cannot listen on " + config.listen +
                          ": the address is in use or does not belong to this machine");
  }

  self->address_ = WithPort(config.listen, port);
  const int awaited = std::max(kMinAwaitedCalls, kAwaitedCalls / num_queues);
  for (const auto& queue : self->queues_) {
    self->solver_service_.Await(queue.get(), awaited);
    if (self->world_service_) self->world_service_->Await(queue.get(), awaited);
    self->health_service_.Await(queue.get(), awaited);
    self->unknown_methods_.Await(queue.get(), awaited);
  }
  self->StartThreads(/*assisted=*/config.io_threads > 1);
  self->sweeper_ = std::thread([server = self.get()] { server->RunSweeper(); });
  return self;
}

GrpcServer::~GrpcServer() {
  {
    const std::lock_guard lock(sweep_mutex_);
    sweeper_stopping_ = true;
  }
  sweep_wake_.notify_all();
  if (sweeper_.joinable()) sweeper_.join();
  if (server_ != nullptr) Drain(std::chrono::nanoseconds(0));
  while (in_flight_calls_.on_queue() > 0) std::this_thread::sleep_for(kDrainPoll);
  // A queue must be shut down and drained before its destruction, also if the start failed.
  if (threads_ == nullptr) StartThreads(/*assisted=*/false);
  threads_.reset();
}

void GrpcServer::StartThreads(bool assisted) {
  std::vector<grpc::CompletionQueue*> queues;
  for (const auto& queue : queues_) queues.push_back(queue.get());
  threads_ = std::make_unique<CompletionThreads>(std::move(queues), assisted);
}

void GrpcServer::RunSweeper() {
  std::unique_lock lock(sweep_mutex_);
  for (int i = 1; !sweep_wake_.wait_for(lock, MessageTransfers::kSweepPeriod,
                                        [this] { return sweeper_stopping_; });
       ++i) {
    const MessageTransfers::State transfers = transfers_.Sweep();
    observer_.ReadsInProgress(transfers.waiting, transfers.slow);
    if (transfers.evicted) SweepCalls();
    if (i % kTransferSweepsPerSweep != 0) continue;
    SweepCalls();
    health_service_.Sweep();
    observer_.MemoryChanged(handler_->Sweep(
        [this] { return ReadProcessMemory(handler_->config().memory_limit_bytes); }));
    MemoryReserve::Refill();
    observer_.Sweep();
  }
}

void GrpcServer::SweepCalls() {
  solver_service_.Sweep();
  if (world_service_) world_service_->Sweep();
}

void GrpcServer::AnnounceDrain() {
  health_service_.Drain();
  solver_service_.AnnounceDrain();
}

void GrpcServer::Drain(std::chrono::nanoseconds timeout) {
  health_service_.Drain();
  in_flight_calls_.Drain();
  transfers_.Drain();
  solver_service_.Drain();
  const auto until = std::chrono::steady_clock::now() + timeout;
  // Until the shutdown a call is turned away by a status; from then on gRPC cancels those that are
  // on their way. These count as lost with this server, and clients give up a call that is lost
  // twice: who calls all the time is to have the status, and pause, before.
  std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(timeout, kTurnedAway));
  // Sends GOAWAY at once, and returns when all connections are closed.
  auto shutdown = std::async(std::launch::async, [this] { server_->Shutdown(); });
  while (in_flight_calls_.count() > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kDrainPoll);
  }
  // Closes the connections, too: clients without a thread of their own would do so seconds later.
  // Repeated, because a connection may have been accepted just before the shutdown began.
  do {
    grpc_server_cancel_all_calls(server_->c_server());
  } while (shutdown.wait_for(kDrainPoll) != std::future_status::ready);
}

}  // namespace sap
