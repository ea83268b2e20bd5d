#include "client/cpp/transport/remote_backend.h"

#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "client/cpp/transport/advice.h"
#include "client/cpp/transport/channel.h"
#include "client/cpp/transport/event_loop.h"
#include "client/cpp/transport/grpc_call.h"
#include "client/cpp/transport/grpc_session.h"
#include "client/cpp/transport/loss.h"
#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/pending_problems.h"
#include "client/cpp/transport/request_bytes.h"
#include "client/cpp/transport/retry.h"
#include "client/cpp/transport/running_calls.h"
#include "client/cpp/transport/server_identity.h"
#include "client/cpp/transport/task.h"
#include "client/cpp/transport/world_calls.h"
#include "client/cpp/transport/world_servers.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "solver/parallel/forked_threads.h"
#include "solver/parallel/stop_token.h"

namespace sap::client {
namespace {

using std::chrono::nanoseconds;
using std::chrono::system_clock;

// Deadline of calls that do no work.
constexpr std::chrono::seconds kQuickCall{5};

v1::SolveOptions OptionsMessage(const SolveOptions& options) {
  v1::SolveOptions message;
  client::ToMessage(options, &message);
  return message;
}

tl::expected<Solution, Error> OutcomeOf(const v1::SolveResponse& response) {
  return FromMessage(response.solution());
}

// The outcomes that the response to a batch has, or the error of the call.
template <typename Outcome, typename Response>
Outcomes<Outcome> OutcomesFrom(const Status& status, const Response& response, size_t count) {
  if (!status) return tl::unexpected(status.error());
  if (static_cast<size_t>(response.outcomes_size()) != count) {
    return tl::unexpected(
        Error{ErrorCode::kInternal, "the response does not have one outcome per problem", ""});
  }
  std::vector<Outcome> outcomes;
  for (const auto& outcome : response.outcomes()) outcomes.push_back(FromMessage(outcome));
  return outcomes;
}

// The answer to a call, or its error.
template <typename Response, typename Convert>
auto AnswerOf(const Status& status, const Response& response, const Convert& convert)
    -> decltype(convert(response)) {
  if (!status) return tl::unexpected(status.error());
  return convert(response);
}

// A message on an arena: its many arrays are allocated and freed together.
template <typename Message>
class OnArena {
 public:
  OnArena()
      : arena_(std::make_unique<google::protobuf::Arena>(Blocks())),
        message_(google::protobuf::Arena::CreateMessage<Message>(arena_.get())) {}

  Message& operator*() const { return *message_; }
  Message* operator->() const { return message_; }

 private:
  static google::protobuf::ArenaOptions Blocks() {
    google::protobuf::ArenaOptions options;
    options.start_block_size = 16 << 10;  // a problem of some 20 contacts
    options.max_block_size = 1 << 20;
    return options;
  }

  std::unique_ptr<google::protobuf::Arena> arena_;
  Message* message_;
};

// State that the attempts of calls share. Sessions and calls in the background may outlive the
// client.
struct Servers {
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<Authorization> authorization;
  std::shared_ptr<grpc::health::v1::Health::Stub> health;
  nanoseconds reconnect_within;
  bool allow_mixed;
  bool encrypted;
};

// One call in its attempts.
class RemoteCall {
 public:
  RemoteCall(const Servers& servers, Events* events, const CallOptions& call, bool high_priority,
             Timeout deadline)
      : servers_(servers),
        events_(events),
        start_{servers.authorization, call, high_priority, servers.encrypted},
        retry_(servers.channel.get(), events, servers.reconnect_within, deadline) {}

  // A call with one response, until it has an outcome. Without a pin (null) any server may answer.
  template <typename Response>
  Task<Status> Unary(const char* method, const grpc::ByteBuffer& request, Response* response,
                     BuildPin* pin) {
    while (true) {
      Status status = co_await Attempt(method, request, response, pin);
      if (status) co_return status;
      const bool again = co_await retry_.After(&status.error());
      if (!again) co_return status;
    }
  }

  Task<Status> Stream(Backend::Problems problems, const v1::SolveOptions& options,
                      const BatchSink& sink) {
    PendingProblems pending(problems);
    BuildPin pin;
    while (true) {
      Status status = co_await StreamPending(&pending, options, sink, &pin);
      if (status && !pending.empty()) {
        co_return tl::unexpected(Error{
            ErrorCode::kInternal, "the batch has ended without an outcome for each problem", ""});
      }
      if (status) co_return status;
      if (events_->cancelled()) co_return status;
      if (pending.empty() && IsLoss(status.error(), CallKind::kCall)) co_return Status();
      const bool again = co_await retry_.After(&status.error());
      if (!again) co_return status;
      pending.Narrow();
    }
  }

  // One attempt: the answer is about the server as it is now.
  Task<tl::expected<bool, Error>> Health() {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(v1::SolverService::service_full_name());
    grpc::health::v1::HealthCheckResponse response;
    grpc::ClientContext context;
    start_.Prepare(kQuickCall, 0, &context);
    const CancelledWithEvents cancelled(events_, &context);
    const auto call = servers_.health->AsyncCheck(&context, request, events_->queue());
    const grpc::Status status = co_await Finish(call.get(), &response);
    const Status checked = Checked(status, context);
    if (!checked) co_return tl::unexpected(checked.error());
    co_return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }

 private:
  template <typename Call, typename Response>
  Task<grpc::Status> Finish(Call* call, Response* response) {
    grpc::Status status;
    Operation finish;
    call->Finish(response, &status, events_->Begin(&finish));
    while (finish.pending) co_await events_->Next();
    co_return status;
  }

  template <typename Response>
  Task<Status> Attempt(const char* method, const grpc::ByteBuffer& request, Response* response,
                       BuildPin* pin) {
    grpc::ClientContext context;
    start_.Prepare(retry_.left(), retry_.lost_attempts(), &context);
    const CancelledWithEvents cancelled(events_, &context);
    const auto call = BytesStub<Response>(servers_.channel)
                          .PrepareUnaryCall(&context, method, request, events_->queue());
    call->StartCall();
    const grpc::Status status = co_await Finish(call.get(), response);
    Status checked = Checked(status, context);
    if (checked && pin != nullptr) checked = Take(context.GetServerTrailingMetadata(), pin);
    co_return checked;
  }

  // One attempt to get the pending outcomes.
  Task<Status> StreamPending(PendingProblems* pending, const v1::SolveOptions& options,
                             const BatchSink& sink, BuildPin* pin) {
    grpc::ClientContext context;
    start_.Prepare(retry_.left(), retry_.lost_attempts(), &context);
    const CancelledWithEvents cancelled(events_, &context);
    const size_t half = pending->size() / 2;
    Operation operation;
    const auto stream = BytesStub<v1::StreamBatchResponse>(servers_.channel)
                            .PrepareCall(&context, methods::kStreamBatch, events_->queue());
    stream->StartCall(events_->Begin(&operation));
    while (operation.pending) co_await events_->Next();
    if (operation.ok) {
      const grpc::ByteBuffer request = BatchRequestBytes(pending->problems(), options);
      stream->WriteLast(request, grpc::WriteOptions(), events_->Begin(&operation));
      while (operation.pending) co_await events_->Next();
    }
    Status refused;
    bool is_checked = false;
    v1::StreamBatchResponse response;
    while (operation.ok) {
      stream->Read(&response, events_->Begin(&operation));
      while (operation.pending) co_await events_->Next();
      if (!operation.ok) break;
      if (!is_checked) {
        // The end of the stream would be too late for outcomes that should not be seen.
        refused = Take(context.GetServerInitialMetadata(), pin);
        is_checked = true;
      }
      if (!refused) break;
      Take(response, half, pending, sink);
    }
    if (!refused) context.TryCancel();
    grpc::Status status;
    stream->Finish(&status, events_->Begin(&operation));
    while (operation.pending) co_await events_->Next();
    if (!refused) co_return refused;
    co_return Checked(status, context);
  }

  void Take(const v1::StreamBatchResponse& response, size_t half, PendingProblems* pending,
            const BatchSink& sink) {
    const auto index = pending->Take(response.index());
    if (!index) return;  // the server breaks the contract
    retry_.Restart();
    // A problem that ends servers thus ends as many as a batch can be halved, and no more.
    if (pending->size() <= half) retry_.ForgetLostAttempts();
    sink(static_cast<int>(*index), FromMessage(response.outcome()));
  }

  Status Take(const Metadata& metadata, BuildPin* pin) const {
    const ServerIdentity server = IdentityIn(metadata);
    if (!servers_.allow_mixed) return pin->Take(server);
    pin->TakeAny(server);
    return {};
  }

  Status Checked(const grpc::Status& status, const grpc::ClientContext& context) const {
    if (!status.ok() && events_->cancelled()) {
      return tl::unexpected(CallCancelled());
    }
    return FromRpcStatus(status, context, start_.encrypted);
  }

  const Servers servers_;
  Events* const events_;
  const CallStart start_;
  Retry retry_;
};

// The address by its servers; as a whole where calls go to the first one that can be reached.
Address InTurn(Address address, const ConnectOptions& options) {
  if (options.in_order) address.kind = Address::Kind::kOne;
  return address;
}

class Remote final : public Backend {
 public:
  Remote(const Address& address, Channel channel, const ConnectOptions& options)
      : low_latency_(options.low_latency),
        worlds_(
            std::make_shared<WorldServers>(InTurn(address, options), options.credentials, channel)),
        servers_{.channel = channel.channel,
                 .authorization = std::move(channel.authorization),
                 .health = grpc::health::v1::Health::NewStub(channel.channel),
                 .reconnect_within = std::min<nanoseconds>(options.reconnect_within, kLongestTime),
                 .allow_mixed = options.allow_mixed_servers,
                 .encrypted = channel.encrypted},
        running_(std::make_shared<RunningCalls>(options.low_latency)) {}

  ~Remote() override {
    if (CheckFork(generation_)) {
      running_->CancelAll();
      return;
    }
    LeaveToParent(std::move(running_));  // threads of the parent may hold its locks
    LeaveToParent(std::move(worlds_));
    LeaveToParent(std::move(servers_));
  }

  void Solve(const ContactProblemView& problem, const SolveOptions& options, Timeout deadline,
             Where where, BuildPin* pin, Done<SolveOutcome> done) override {
    CallParameters parameters{options, deadline, where};
    parameters.pin = pin;
    Call<v1::SolveResponse>(
        methods::kSolve, SolveRequestBytes(problem, OptionsMessage(options)), parameters,
        [](const Status& status, const v1::SolveResponse& response) {
          return AnswerOf(status, response, OutcomeOf);
        },
        std::move(done));
  }

  void SolveBatch(Problems problems, const SolveOptions& options, Timeout deadline, Where where,
                  Done<Outcomes<SolveOutcome>> done) override {
    Call<v1::SolveBatchResponse>(
        methods::kSolveBatch, BatchRequestBytes(problems, OptionsMessage(options)),
        {options, deadline, where},
        [count = problems.size()](const Status& status, const v1::SolveBatchResponse& response) {
          return OutcomesFrom<SolveOutcome>(status, response, count);
        },
        std::move(done));
  }

  void StreamBatch(Problems problems, const SolveOptions& options, Timeout deadline, BatchSink sink,
                   Where where, Done<Status> done) override {
    if (Status allowed = Allowed(options.call); !allowed) return done(allowed);
    const CallParameters parameters{options, deadline, where};
    Run<Status>(
        parameters,
        [](Events* events, Servers servers, CallParameters parameters, Problems problems,
           v1::SolveOptions options, BatchSink sink) -> Task<Status> {
          RemoteCall call(servers, events, parameters.context, parameters.high,
                          parameters.deadline);
          Status status = co_await call.Stream(problems, options, sink);
          co_return status;
        },
        std::move(done), problems, OptionsMessage(options), std::move(sink));
  }

  void Differentiate(const DifferentiateView& request, Timeout deadline, Where where,
                     Done<DerivativesOutcome> done) override {
    const OnArena<v1::DifferentiateRequest> message;
    client::ToMessage(request, &*message);
    Call<v1::DifferentiateResponse>(
        methods::kDifferentiate, Serialize(*message), {request.solve, deadline, where},
        [](const Status& status, const v1::DifferentiateResponse& response) {
          return AnswerOf(status, response, [](const auto& answer) { return FromMessage(answer); });
        },
        std::move(done));
  }

  void DifferentiateBatch(std::span<const DifferentiateView> requests, const BatchLimits& limits,
                          Timeout deadline, Where where,
                          Done<Outcomes<DerivativesOutcome>> done) override {
    const OnArena<v1::DifferentiateBatchRequest> batch;
    for (const DifferentiateView& request : requests) {
      client::ToMessage(request, batch->add_requests());
    }
    if (limits.time_budget) client::ToMessage(*limits.time_budget, batch->mutable_time_budget());
    CallParameters parameters{limits.call, deadline, where};
    parameters.high = std::ranges::all_of(requests, [](const DifferentiateView& request) {
      return request.solve.priority == Priority::kHigh;
    });
    Call<v1::DifferentiateBatchResponse>(
        methods::kDifferentiateBatch, Serialize(*batch), parameters,
        [count = requests.size()](const Status& status,
                                  const v1::DifferentiateBatchResponse& response) {
          return OutcomesFrom<DerivativesOutcome>(status, response, count);
        },
        std::move(done));
  }

  void Advance(const WorldsView& worlds, const WorldsOptions& options, Timeout deadline,
               Where where, Done<Status> done) override {
    if (Status allowed = Allowed(options.call); !allowed) return done(allowed);
    WorldCallSettings settings{
        .call = options.call,
        .high_priority = options.priority == Priority::kHigh,
        .reconnect_within = std::chrono::duration_cast<Clock::duration>(servers_.reconnect_within),
        .allow_mixed_servers = servers_.allow_mixed};
    if (deadline) settings.deadline = Clock::now() + *deadline;
    Run<Status>(
        CallParameters(options.call, deadline, where),
        [](Events* events, Servers, CallParameters, std::shared_ptr<WorldServers> servers,
           WorldsView worlds, WorldCallSettings settings) -> Task<Status> {
          WorldCalls calls(std::move(servers), events, worlds, settings);
          Status status = co_await calls.Run();
          co_return status;
        },
        std::move(done), worlds_, worlds, settings);
  }

  tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(
      const SolveOptions& options, const SessionOptions& session_options,
      Timeout deadline) override {
    if (Status allowed = Allowed(options.call); !allowed) return tl::unexpected(allowed.error());
    v1::SolveSessionRequest request;
    client::ToMessage(options, request.mutable_open()->mutable_options());
    request.mutable_open()->set_low_latency(session_options.low_latency.value_or(low_latency_));
    const nanoseconds within = session_options.reconnect_within.value_or(servers_.reconnect_within);
    return OpenGrpcSession(
        {.channel = servers_.channel,
         .start = {.authorization = servers_.authorization,
                   .call = options.call,
                   .encrypted = servers_.encrypted},
         .reconnect_within = std::min<nanoseconds>(within, kLongestTime),
         .allow_mixed_servers = servers_.allow_mixed,
         .background = session_options.background ? running_->background() : nullptr,
         .opens_later = session_options.opens_later},
        request, deadline);
  }

  void Info(const CallOptions& call, Timeout deadline, Where where,
            Done<tl::expected<ServerInfo, Error>> done) override {
    deadline = std::min<nanoseconds>(deadline.value_or(kQuickCall), kQuickCall);
    Call<v1::GetServerInfoResponse>(
        methods::kGetServerInfo, Serialize(v1::GetServerInfoRequest()), {call, deadline, where},
        [](const Status& status, const v1::GetServerInfoResponse& response) {
          return AnswerOf(status, response, [](const auto& info) {
            return tl::expected<ServerInfo, Error>(FromMessage(info));
          });
        },
        std::move(done));
  }

  void Health(const CallOptions& call, Where where, Done<tl::expected<bool, Error>> done) override {
    if (Status allowed = Allowed(call); !allowed) return done(tl::unexpected(allowed.error()));
    const CallParameters parameters{call, kQuickCall, where};
    Run<tl::expected<bool, Error>>(
        parameters,
        [](Events* events, Servers servers,
           CallParameters parameters) -> Task<tl::expected<bool, Error>> {
          RemoteCall call(servers, events, parameters.context, parameters.high,
                          parameters.deadline);
          auto healthy = co_await call.Health();
          co_return healthy;
        },
        std::move(done));
  }

  Status PassOn(const v1::DifferentiateRequest& request, v1::DifferentiateResponse* response) {
    return Await<Status>([&](Where where, Done<Status> done) {
      CallParameters parameters{CallOptions(), std::nullopt, where};
      parameters.high = request.options().priority() == v1::PRIORITY_HIGH;
      Call<v1::DifferentiateResponse>(
          methods::kDifferentiate, Serialize(request), parameters,
          [response](const Status& status, const v1::DifferentiateResponse& arrived) {
            *response = arrived;
            return status;
          },
          std::move(done));
    });
  }

 private:
  struct CallParameters {
    CallParameters(const CallOptions& call, Timeout until, Where place)
        : context(call), deadline(until), where(place) {}
    CallParameters(const SolveOptions& options, Timeout until, Where place)
        : CallParameters(options.call, until, place) {
      high = options.priority == Priority::kHigh;
    }

    CallOptions context;
    Timeout deadline;
    Where where;
    bool high{false};
    BuildPin* pin{nullptr};  // null: any server may answer
  };

  Status Allowed(const CallOptions& call) const {
    if (Status allowed = CheckFork(generation_); !allowed) return allowed;
    return CheckHeaders(call);
  }

  // Runs the coroutine make(events, servers, parameters, arguments...), whose frame has copies of
  // them.
  template <typename Outcome, typename Make, typename... Arguments>
  void Run(const CallParameters& parameters, const Make& make, Done<Outcome> done,
           Arguments... arguments) {
    running_->Run<Outcome>(
        parameters.where, parameters.context.cancelled,
        [&](Events* events) { return make(events, servers_, parameters, std::move(arguments)...); },
        std::move(done));
  }

  // A unary call, whose outcome convert(status, response) makes.
  template <typename Response, typename Convert, typename Outcome>
  void Call(const char* method, grpc::ByteBuffer request, const CallParameters& parameters,
            Convert convert, Done<Outcome> done) {
    if (Status allowed = Allowed(parameters.context); !allowed) {
      return done(convert(allowed, Response()));
    }
    Run<Outcome>(
        parameters,
        [](Events* events, Servers servers, CallParameters parameters, const char* method,
           grpc::ByteBuffer request, Convert convert) -> Task<Outcome> {
          RemoteCall call(servers, events, parameters.context, parameters.high,
                          parameters.deadline);
          const OnArena<Response> response;
          const Status status = co_await call.Unary(method, request, &*response, parameters.pin);
          co_return convert(status, *response);
        },
        std::move(done), method, std::move(request), std::move(convert));
  }

  const int generation_{ForkGeneration()};
  const bool low_latency_;
  std::shared_ptr<WorldServers> worlds_;
  Servers servers_;
  std::shared_ptr<RunningCalls> running_;
};

// Time to find out why no server is used.
constexpr std::chrono::seconds kExplanation{1};

// Reason that keeps calls from servers: why none can be reached, or else what their health service
// says; empty if neither is known.
std::string Explain(const Address& address, const Credentials& credentials) {
  const auto channel = MakeChannel(address, credentials, ServerChoice::kAny);
  if (!channel) return "";
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(v1::SolverService::service_full_name());
  grpc::health::v1::HealthCheckResponse response;
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + kExplanation);
  const auto watch = grpc::health::v1::Health::NewStub(channel->channel)->Watch(&context, request);
  if (watch->Read(&response)) {
    context.TryCancel();
    watch->Finish();
    if (response.status() == grpc::health::v1::HealthCheckResponse::SERVING) return "";
    return "; health: " + response.ServingStatus_Name(response.status());
  }
  const grpc::Status status = watch->Finish();
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return "";
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    const std::string advice = Advice(status.error_message(), channel->encrypted);
    return "; " + (advice.empty() ? status.error_message() : advice);
  }
  return std::string("; health: ") + Name(FromCode(status.error_code())) + " " +
         status.error_message();
}

// Waits for a server that takes calls.
Status AwaitServer(const Channel& channel, const Address& address, const ConnectOptions& options) {
  const auto timeout = std::min<nanoseconds>(options.connect_timeout, kLongestTime);
  const StopToken stop(options.cancelled,
                       Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout));
  while (!channel.channel->WaitForConnected(
      system_clock::now() + std::min<system_clock::duration>(kFlagPeriod, stop.TimeLeft()))) {
    if (stop.Cancelled()) {
      return tl::unexpected(CallCancelled());
    }
    if (!stop.Requested()) continue;
    return tl::unexpected(
        Error{ErrorCode::kUnavailable,
              "no server answers at " + address.text + Explain(address, options.credentials), ""});
  }
  return {};
}

tl::expected<std::unique_ptr<Remote>, Error> ConnectTo(const std::string& address,
                                                       const ConnectOptions& options) {
  const auto parsed = ParseAddress(address);
  if (!parsed) return tl::unexpected(parsed.error());
  auto channel = MakeChannel(*parsed, options.credentials,
                             options.in_order ? ServerChoice::kAny : ServerChoice::kHealthy);
  if (!channel) return tl::unexpected(channel.error());
  if (options.connect_timeout.count() > 0) {
    if (Status waited = AwaitServer(*channel, *parsed, options); !waited) {
      return tl::unexpected(waited.error());
    }
  }
  return std::make_unique<Remote>(*parsed, std::move(*channel), options);
}

}  // namespace

tl::expected<std::unique_ptr<Backend>, Error> RemoteBackend(const std::string& address,
                                                            const ConnectOptions& options) {
  return ConnectTo(address, options);
}

Status PassOn(const std::string& address, const ConnectOptions& options,
              const v1::DifferentiateRequest& request, v1::DifferentiateResponse* response) {
  const auto servers = ConnectTo(address, options);
  if (!servers) return tl::unexpected(servers.error());
  return (*servers)->PassOn(request, response);
}

}  // namespace sap::client
