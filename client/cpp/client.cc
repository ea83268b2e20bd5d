#include "client/cpp/client.h"

#include <string>
#include <utility>
#include <vector>

#include "client/cpp/backend/backend.h"

namespace sap::client {
namespace {

// The time until the deadline of a call, or an error if it has passed.
tl::expected<Timeout, Error> CheckDeadline(Timeout deadline) {
  if (deadline && deadline->count() <= 0) {
    return tl::unexpected(
        Error{ErrorCode::kDeadlineExceeded, "the deadline of the call has passed", ""});
  }
  return deadline > kLongestTime ? std::nullopt : deadline;
}

std::vector<ContactProblemView> ViewsOf(std::span<const Problem> problems) {
  std::vector<ContactProblemView> views;
  for (const Problem& problem : problems) views.push_back(ViewOf(problem));
  return views;
}

// Passes the outcomes of a batch on; the error of the call itself becomes the outcome of each.
template <typename Outcome>
Done<Outcomes<Outcome>> ForEachProblem(size_t count, Done<std::vector<Outcome>> done) {
  return [count, done = std::move(done)](Outcomes<Outcome> outcomes) {
    if (!outcomes) return done({count, tl::unexpected(outcomes.error())});
    done(*std::move(outcomes));
  };
}

}  // namespace

// Each call once, for the thread of the caller and for the background.
class Client::Calls {
 public:
  explicit Calls(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  Backend* backend() { return backend_.get(); }

  void Solve(const ContactProblemView& problem, const SolveOptions& options, int servers,
             Where where, Done<SolveOutcome> done) {
    const auto deadline = CheckDeadline(options.deadline);
    if (!deadline) return done(tl::unexpected(deadline.error()));
    if (servers < 0) {
      return done(tl::unexpected(
          Error{ErrorCode::kInvalidArgument,
                "servers is " + std::to_string(servers) + "; it must be >= 0", "servers"}));
    }
    backend_->SolveDivided(problem, options, servers, *deadline, where, std::move(done));
  }

  void SolveBatch(std::span<const ContactProblemView> problems, const SolveOptions& options,
                  Where where, Done<std::vector<SolveOutcome>> done) {
    const auto deadline = CheckDeadline(options.deadline);
    if (!deadline) return done({problems.size(), tl::unexpected(deadline.error())});
    backend_->SolveBatch(problems, options, *deadline, where,
                         ForEachProblem(problems.size(), std::move(done)));
  }

  void StreamBatch(std::span<const ContactProblemView> problems, const SolveOptions& options,
                   BatchSink sink, Where where, Done<Status> done) {
    const auto deadline = CheckDeadline(options.deadline);
    if (!deadline) return done(tl::unexpected(deadline.error()));
    backend_->StreamBatch(problems, options, *deadline, std::move(sink), where, std::move(done));
  }

  void Differentiate(const DifferentiateView& request, Where where, Done<DerivativesOutcome> done) {
    const auto deadline = CheckDeadline(request.solve.deadline);
    if (!deadline) return done(tl::unexpected(deadline.error()));
    backend_->Differentiate(request, *deadline, where, std::move(done));
  }

  void DifferentiateBatch(std::span<const DifferentiateView> requests, const BatchLimits& limits,
                          Where where, Done<std::vector<DerivativesOutcome>> done) {
    const auto deadline = CheckDeadline(limits.deadline);
    if (!deadline) return done({requests.size(), tl::unexpected(deadline.error())});
    backend_->DifferentiateBatch(requests, limits, *deadline, where,
                                 ForEachProblem(requests.size(), std::move(done)));
  }

  void Advance(const WorldsView& worlds, const WorldsOptions& options, Where where,
               Done<Status> done) {
    if (Status checked = CheckWorlds(worlds); !checked) return done(checked);
    const auto deadline = CheckDeadline(options.deadline);
    if (!deadline) return done(tl::unexpected(deadline.error()));
    backend_->Advance(worlds, options, *deadline, where, std::move(done));
  }

 private:
  const std::unique_ptr<Backend> backend_;
};

tl::expected<Client, Error> Client::Connect(const std::string& address,
                                            const ConnectOptions& options) {
  auto backend = client::Connect(address, options);
  if (!backend) return tl::unexpected(backend.error());
  return Client(std::make_unique<Calls>(std::move(*backend)));
}

Client::Client(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Client::SolveOutcome Client::Solve(const ContactProblemView& problem, const SolveOptions& options,
                                   int servers) {
  return Await<SolveOutcome>([&](Where where, Done<SolveOutcome> done) {
    calls_->Solve(problem, options, servers, where, std::move(done));
  });
}

void Client::StartSolve(const ContactProblemView& problem, const SolveOptions& options, int servers,
                        Done<SolveOutcome> done) {
  calls_->Solve(problem, options, servers, Where::kInBackground, std::move(done));
}

std::vector<Client::SolveOutcome> Client::SolveBatch(std::span<const Problem> problems,
                                                     const SolveOptions& options) {
  return SolveBatch(ViewsOf(problems), options);
}

std::vector<Client::SolveOutcome> Client::SolveBatch(std::span<const ContactProblemView> problems,
                                                     const SolveOptions& options) {
  using Outcomes = std::vector<SolveOutcome>;
  return Await<Outcomes>([&](Where where, Done<Outcomes> done) {
    calls_->SolveBatch(problems, options, where, std::move(done));
  });
}

void Client::StartSolveBatch(std::span<const ContactProblemView> problems,
                             const SolveOptions& options, Done<std::vector<SolveOutcome>> done) {
  calls_->SolveBatch(problems, options, Where::kInBackground, std::move(done));
}

tl::expected<void, Error> Client::StreamBatch(std::span<const Problem> problems,
                                              const SolveOptions& options, const BatchSink& sink) {
  return StreamBatch(ViewsOf(problems), options, sink);
}

tl::expected<void, Error> Client::StreamBatch(std::span<const ContactProblemView> problems,
                                              const SolveOptions& options, const BatchSink& sink) {
  return Await<Status>([&](Where where, Done<Status> done) {
    calls_->StreamBatch(problems, options, sink, where, std::move(done));
  });
}

void Client::StartStreamBatch(std::span<const ContactProblemView> problems,
                              const SolveOptions& options, BatchSink sink,
                              Done<tl::expected<void, Error>> done) {
  calls_->StreamBatch(problems, options, std::move(sink), Where::kInBackground, std::move(done));
}

Client::DerivativesOutcome Client::Differentiate(const DifferentiateView& request) {
  return Await<DerivativesOutcome>([&](Where where, Done<DerivativesOutcome> done) {
    calls_->Differentiate(request, where, std::move(done));
  });
}

void Client::StartDifferentiate(const DifferentiateView& request, Done<DerivativesOutcome> done) {
  calls_->Differentiate(request, Where::kInBackground, std::move(done));
}

std::vector<Client::DerivativesOutcome> Client::DifferentiateBatch(
    std::span<const DifferentiateRequest> requests, const BatchLimits& limits) {
  std::vector<DifferentiateView> views;
  for (const DifferentiateRequest& request : requests) {
    views.push_back(ViewOf(request.problem, request.cotangents, request.options));
  }
  return DifferentiateBatch(views, limits);
}

std::vector<Client::DerivativesOutcome> Client::DifferentiateBatch(
    std::span<const DifferentiateView> requests, const BatchLimits& limits) {
  using Outcomes = std::vector<DerivativesOutcome>;
  return Await<Outcomes>([&](Where where, Done<Outcomes> done) {
    calls_->DifferentiateBatch(requests, limits, where, std::move(done));
  });
}

void Client::StartDifferentiateBatch(std::span<const DifferentiateView> requests,
                                     const BatchLimits& limits,
                                     Done<std::vector<DerivativesOutcome>> done) {
  calls_->DifferentiateBatch(requests, limits, Where::kInBackground, std::move(done));
}

tl::expected<void, Error> Client::Advance(const WorldsView& worlds, const WorldsOptions& options) {
  return Await<Status>([&](Where where, Done<Status> done) {
    calls_->Advance(worlds, options, where, std::move(done));
  });
}

void Client::StartAdvance(const WorldsView& worlds, const WorldsOptions& options,
                          Done<tl::expected<void, Error>> done) {
  calls_->Advance(worlds, options, Where::kInBackground, std::move(done));
}

tl::expected<Session, Error> Client::OpenSession(const SolveOptions& options,
                                                 const SessionOptions& session_options) {
  const auto deadline = CheckDeadline(options.deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  auto steps = calls_->backend()->OpenSession(options, session_options, *deadline);
  if (!steps) return tl::unexpected(steps.error());
  return Session(std::move(*steps));
}

tl::expected<ReplayReport, Error> Client::Replay(const std::string& recording) {
  return ReplayRecording(recording, calls_->backend());
}

tl::expected<ServerInfo, Error> Client::Info(const CallOptions& call,
                                             std::optional<std::chrono::nanoseconds> deadline) {
  const auto left = CheckDeadline(deadline);
  if (!left) return tl::unexpected(left.error());
  return InfoOf(calls_->backend(), call, *left);
}

void Client::StartInfo(const CallOptions& call, Done<tl::expected<ServerInfo, Error>> done) {
  calls_->backend()->Info(call, std::nullopt, Where::kInBackground, std::move(done));
}

tl::expected<bool, Error> Client::Health(const CallOptions& call) {
  using Outcome = tl::expected<bool, Error>;
  return Await<Outcome>([&](Where where, Done<Outcome> done) {
    calls_->backend()->Health(call, where, std::move(done));
  });
}

void Client::StartHealth(const CallOptions& call, Done<tl::expected<bool, Error>> done) {
  calls_->backend()->Health(call, Where::kInBackground, std::move(done));
}

}  // namespace sap::client
