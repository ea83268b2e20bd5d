#include "client/cpp/client.h"

#include "client/cpp/split/split_solver.h"
#include "client/cpp/transport/message_conversion.h"
#include "client/cpp/transport/transport.h"

namespace sap::client {
namespace {

// The time until the deadline of a call, or an error if it has passed.
tl::expected<Transport::Timeout, Error> CheckDeadline(Transport::Timeout deadline) {
  if (deadline && deadline->count() <= 0) {
    return tl::unexpected(
        Error{ErrorCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return deadline > kLongestTime ? std::nullopt : deadline;
}

void ToMessages(std::span<const Problem> problems,
                google::protobuf::RepeatedPtrField<v1::ContactProblem>* messages) {
  for (const Problem& problem : problems) ToMessage(problem, messages->Add());
}

// One outcome per problem of a batch: what the response has, or the error of the call.
template <typename Answer, typename Response>
std::vector<tl::expected<Answer, Error>> OutcomesFrom(const Transport::Status& status,
                                                      const Response& response, size_t count) {
  std::vector<tl::expected<Answer, Error>> outcomes;
  const auto fail = [&](const Error& error) {
    outcomes.assign(count, tl::unexpected(error));
    return outcomes;
  };
  if (!status) return fail(status.error());
  if (static_cast<size_t>(response.outcomes_size()) != count) {
    return fail({ErrorCode::kInternal, "the response does not have one outcome per problem", ""});
  }
  for (const auto& outcome : response.outcomes()) outcomes.push_back(FromMessage(outcome));
  return outcomes;
}

}  // namespace

tl::expected<Client, Error> Client::Connect(const std::string& address,
                                            const ConnectOptions& options) {
  if (address == "embedded:") return Client(address, Embed(options.threads), options);
  auto transport = ConnectByGrpc(address, options);
  if (!transport) return tl::unexpected(transport.error());
  return Client(address, std::move(*transport), options);
}

Client::Client(const std::string& address, std::unique_ptr<Transport> transport,
               const ConnectOptions& options)
    : transport_(std::move(transport)),
      split_solver_(std::make_unique<SplitSolver>(address)),
      low_latency_(options.low_latency) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

tl::expected<Solution, Error> Client::Solve(const Problem& problem, const SolveOptions& options,
                                            int servers) {
  const auto start = std::chrono::steady_clock::now();
  auto deadline = CheckDeadline(options.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  if (servers < 0) {
    return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                                "servers is " + std::to_string(servers) + "; it must be >= 0",
                                "servers"});
  }
  if (servers != 1) {
    auto split = split_solver_->Solve(transport_.get(), problem, options, servers, *deadline);
    if (split) return std::move(*split);
    if (*deadline) {
      deadline = CheckDeadline(**deadline - (std::chrono::steady_clock::now() - start));
    }
    if (!deadline) return tl::unexpected(deadline.error());
  }
  v1::SolveRequest request;
  ToMessage(problem, request.mutable_problem());
  ToMessage(options, request.mutable_options());
  v1::SolveResponse response;
  if (auto status = transport_->Solve(request, *deadline, &response); !status) {
    return tl::unexpected(status.error());
  }
  return FromMessage(response.solution());
}

std::vector<tl::expected<Solution, Error>> Client::SolveBatch(std::span<const Problem> problems,
                                                              const SolveOptions& options) {
  v1::SolveBatchRequest request;
  ToMessages(problems, request.mutable_problems());
  ToMessage(options, request.mutable_options());
  v1::SolveBatchResponse response;
  const auto status = CheckDeadline(options.deadline).and_then([&](Transport::Timeout deadline) {
    return transport_->SolveBatch(request, deadline, &response);
  });
  return OutcomesFrom<Solution>(status, response, problems.size());
}

tl::expected<Derivatives, Error> Client::Differentiate(const Problem& problem,
                                                       std::span<const Cotangent> cotangents,
                                                       const DifferentiateOptions& options) {
  const auto deadline = CheckDeadline(options.solve.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  v1::DifferentiateRequest request;
  ToMessage(problem, cotangents, options, &request);
  v1::DifferentiateResponse response;
  if (auto status = transport_->Differentiate(request, *deadline, &response); !status) {
    return tl::unexpected(status.error());
  }
  return FromMessage(response);
}

std::vector<tl::expected<Derivatives, Error>> Client::DifferentiateBatch(
    std::span<const DifferentiateRequest> requests, const BatchLimits& limits) {
  v1::DifferentiateBatchRequest batch;
  for (const DifferentiateRequest& request : requests) {
    ToMessage(request.problem, request.cotangents, request.options, batch.add_requests());
  }
  if (limits.time_budget) ToMessage(*limits.time_budget, batch.mutable_time_budget());
  v1::DifferentiateBatchResponse response;
  const auto status = CheckDeadline(limits.deadline).and_then([&](Transport::Timeout deadline) {
    return transport_->DifferentiateBatch(batch, deadline, &response);
  });
  return OutcomesFrom<Derivatives>(status, response, requests.size());
}

tl::expected<void, Error> Client::StreamBatch(std::span<const Problem> problems,
                                              const SolveOptions& options, const BatchSink& sink) {
  const auto deadline = CheckDeadline(options.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  v1::StreamBatchRequest request;
  ToMessages(problems, request.mutable_problems());
  ToMessage(options, request.mutable_options());
  return transport_->StreamBatch(request, *deadline, [&](const v1::StreamBatchResponse& response) {
    if (response.index() >= problems.size()) return;  // the server breaks the contract
    sink(static_cast<int>(response.index()), FromMessage(response.outcome()));
  });
}

tl::expected<Session, Error> Client::OpenSession(const SolveOptions& options) {
  const auto deadline = CheckDeadline(options.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  v1::SolveSessionRequest request;
  ToMessage(options, request.mutable_open()->mutable_options());
  request.mutable_open()->set_low_latency(low_latency_);
  auto stream = transport_->OpenSession(request, *deadline);
  if (!stream) return tl::unexpected(stream.error());
  return Session(std::move(*stream));
}

tl::expected<ReplayReport, Error> Client::Replay(const std::string& recording) {
  return ReplayRecording(recording, transport_.get());
}

tl::expected<ServerInfo, Error> Client::Info() {
  v1::GetServerInfoResponse response;
  if (auto status = transport_->Info(std::nullopt, &response); !status)
    return tl::unexpected(status.error());
  return FromMessage(response);
}

tl::expected<bool, Error> Client::Health() { return transport_->Health(); }

}  // namespace sap::client
