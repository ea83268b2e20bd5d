#include <utility>

#include "client/cpp/transport/backend.h"
#include "client/cpp/transport/message_conversion.h"

namespace sap::client {
namespace {

void ToMessages(std::span<const Problem> problems,
                google::protobuf::RepeatedPtrField<v1::ContactProblem>* messages) {
  for (const Problem& problem : problems) client::ToMessage(problem, messages->Add());
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

class RemoteSteps final : public StepStream {
 public:
  explicit RemoteSteps(std::unique_ptr<SessionStream> stream) : stream_(std::move(stream)) {}

  int max_steps_in_flight() const override { return stream_->max_steps_in_flight(); }
  bool draining() const override { return stream_->draining(); }

  bool Send(uint64_t step_id, const Problem& problem,
            const std::optional<SolveOptions>& options) override {
    v1::SessionStep* step = request_.mutable_step();
    step->set_step_id(step_id);
    client::ToMessage(problem, step->mutable_problem());
    step->clear_options();
    if (options) client::ToMessage(*options, step->mutable_options());
    return stream_->Send(&request_);
  }

  tl::expected<StepOutcome, Error> Receive() override {
    if (const auto received = stream_->Receive(&response_); !received) {
      return tl::unexpected(received.error());
    }
    const v1::StepOutcome& step = response_.step();
    return StepOutcome{.step_id = step.step_id(),
                       .warm_started = step.warm_started(),
                       .solution = FromMessage(step.outcome())};
  }

  tl::expected<void, Error> Close() override { return stream_->Close(); }

 private:
  const std::unique_ptr<SessionStream> stream_;
  v1::SolveSessionRequest request_;  // reused
  v1::SolveSessionResponse response_;
};

class Remote final : public Backend {
 public:
  Remote(std::unique_ptr<Transport> transport, bool low_latency)
      : transport_(std::move(transport)), low_latency_(low_latency) {}

  SolveOutcome Solve(const Problem& problem, const SolveOptions& options,
                     Timeout deadline) override {
    v1::SolveRequest request;
    client::ToMessage(problem, request.mutable_problem());
    client::ToMessage(options, request.mutable_options());
    v1::SolveResponse response;
    if (auto status = transport_->Solve(request, deadline, &response); !status) {
      return tl::unexpected(status.error());
    }
    return FromMessage(response.solution());
  }

  std::vector<SolveOutcome> SolveBatch(std::span<const Problem> problems,
                                       const SolveOptions& options, Timeout deadline) override {
    v1::SolveBatchRequest request;
    ToMessages(problems, request.mutable_problems());
    client::ToMessage(options, request.mutable_options());
    v1::SolveBatchResponse response;
    const auto status = transport_->SolveBatch(request, deadline, &response);
    return OutcomesFrom<Solution>(status, response, problems.size());
  }

  Status StreamBatch(std::span<const Problem> problems, const SolveOptions& options,
                     Timeout deadline, const Client::BatchSink& sink) override {
    v1::StreamBatchRequest request;
    ToMessages(problems, request.mutable_problems());
    client::ToMessage(options, request.mutable_options());
    return transport_->StreamBatch(request, deadline, [&](const v1::StreamBatchResponse& response) {
      if (response.index() >= problems.size()) return;  // the server breaks the contract
      sink(static_cast<int>(response.index()), FromMessage(response.outcome()));
    });
  }

  DerivativesOutcome Differentiate(const Problem& problem, std::span<const Cotangent> cotangents,
                                   const DifferentiateOptions& options, Timeout deadline) override {
    v1::DifferentiateRequest request;
    client::ToMessage(problem, cotangents, options, &request);
    v1::DifferentiateResponse response;
    if (auto status = transport_->Differentiate(request, deadline, &response); !status) {
      return tl::unexpected(status.error());
    }
    return FromMessage(response);
  }

  std::vector<DerivativesOutcome> DifferentiateBatch(std::span<const DifferentiateRequest> requests,
                                                     const BatchLimits& limits,
                                                     Timeout deadline) override {
    v1::DifferentiateBatchRequest batch;
    for (const DifferentiateRequest& request : requests) {
      client::ToMessage(request.problem, request.cotangents, request.options, batch.add_requests());
    }
    if (limits.time_budget) client::ToMessage(*limits.time_budget, batch.mutable_time_budget());
    v1::DifferentiateBatchResponse response;
    const auto status = transport_->DifferentiateBatch(batch, deadline, &response);
    return OutcomesFrom<Derivatives>(status, response, requests.size());
  }

  tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(const SolveOptions& options,
                                                               Timeout deadline) override {
    v1::SolveSessionRequest request;
    client::ToMessage(options, request.mutable_open()->mutable_options());
    request.mutable_open()->set_low_latency(low_latency_);
    auto stream = transport_->OpenSession(request, deadline);
    if (!stream) return tl::unexpected(stream.error());
    return std::make_unique<RemoteSteps>(std::move(*stream));
  }

  tl::expected<ServerInfo, Error> Info(Timeout deadline) override {
    v1::GetServerInfoResponse response;
    if (auto status = transport_->Info(deadline, &response); !status) {
      return tl::unexpected(status.error());
    }
    return FromMessage(response);
  }

  tl::expected<bool, Error> Health() override { return transport_->Health(); }

  Status Solve(const v1::SolveRequest& request, v1::SolveResponse* response) override {
    return transport_->Solve(request, std::nullopt, response);
  }
  Status Differentiate(const v1::DifferentiateRequest& request,
                       v1::DifferentiateResponse* response) override {
    return transport_->Differentiate(request, std::nullopt, response);
  }

 private:
  const std::unique_ptr<Transport> transport_;
  const bool low_latency_;
};

}  // namespace

std::unique_ptr<Backend> RemoteBackend(std::unique_ptr<Transport> transport, bool low_latency) {
  return std::make_unique<Remote>(std::move(transport), low_latency);
}

tl::expected<std::unique_ptr<Backend>, Error> Connect(const std::string& address,
                                                      const ConnectOptions& options) {
  if (address == "embedded:") return EmbeddedBackend(options);
  auto transport = ConnectByGrpc(address, options);
  if (!transport) return tl::unexpected(transport.error());
  return RemoteBackend(std::move(*transport), options.low_latency);
}

}  // namespace sap::client
