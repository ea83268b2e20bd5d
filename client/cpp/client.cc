#include "client/cpp/client.h"

#include <string>
#include <utility>

#include "client/cpp/split/split_solver.h"
#include "client/cpp/transport/backend.h"

namespace sap::client {
namespace {

// The time until the deadline of a call, or an error if it has passed.
tl::expected<Backend::Timeout, Error> CheckDeadline(Backend::Timeout deadline) {
  if (deadline && deadline->count() <= 0) {
    return tl::unexpected(
        Error{ErrorCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return deadline > kLongestTime ? std::nullopt : deadline;
}

}  // namespace

tl::expected<Client, Error> Client::Connect(const std::string& address,
                                            const ConnectOptions& options) {
  auto backend = client::Connect(address, options);
  if (!backend) return tl::unexpected(backend.error());
  return Client(address, std::move(*backend));
}

Client::Client(const std::string& address, std::unique_ptr<Backend> backend)
    : backend_(std::move(backend)), split_solver_(std::make_unique<SplitSolver>(address)) {}
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
    auto split = split_solver_->Solve(backend_.get(), problem, options, servers, *deadline);
    if (split) return std::move(*split);
    if (*deadline) {
      deadline = CheckDeadline(**deadline - (std::chrono::steady_clock::now() - start));
    }
    if (!deadline) return tl::unexpected(deadline.error());
  }
  return backend_->Solve(problem, options, *deadline);
}

std::vector<tl::expected<Solution, Error>> Client::SolveBatch(std::span<const Problem> problems,
                                                              const SolveOptions& options) {
  const auto deadline = CheckDeadline(options.deadline);
  if (!deadline) return {problems.size(), tl::unexpected(deadline.error())};
  return backend_->SolveBatch(problems, options, *deadline);
}

tl::expected<Derivatives, Error> Client::Differentiate(const Problem& problem,
                                                       std::span<const Cotangent> cotangents,
                                                       const DifferentiateOptions& options) {
  const auto deadline = CheckDeadline(options.solve.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  return backend_->Differentiate(problem, cotangents, options, *deadline);
}

std::vector<tl::expected<Derivatives, Error>> Client::DifferentiateBatch(
    std::span<const DifferentiateRequest> requests, const BatchLimits& limits) {
  const auto deadline = CheckDeadline(limits.deadline);
  if (!deadline) return {requests.size(), tl::unexpected(deadline.error())};
  return backend_->DifferentiateBatch(requests, limits, *deadline);
}

tl::expected<void, Error> Client::StreamBatch(std::span<const Problem> problems,
                                              const SolveOptions& options, const BatchSink& sink) {
  const auto deadline = CheckDeadline(options.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  return backend_->StreamBatch(problems, options, *deadline, sink);
}

tl::expected<Session, Error> Client::OpenSession(const SolveOptions& options) {
  const auto deadline = CheckDeadline(options.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  auto steps = backend_->OpenSession(options, *deadline);
  if (!steps) return tl::unexpected(steps.error());
  return Session(std::move(*steps));
}

tl::expected<ReplayReport, Error> Client::Replay(const std::string& recording) {
  return ReplayRecording(recording, backend_.get());
}

tl::expected<ServerInfo, Error> Client::Info() { return backend_->Info(std::nullopt); }

tl::expected<bool, Error> Client::Health() { return backend_->Health(); }

}  // namespace sap::client
