#include <utility>

#include "tests/e2e/clients/tested_client.h"

namespace sap::test {
namespace {

using client::Error;
using client::Problem;

class CppSession final : public TestedSession {
 public:
  explicit CppSession(client::Session session) : session_(std::move(session)) {}

  Outcome Step(const Problem& problem) override { return session_.Step(problem); }
  tl::expected<void, Error> Send(const Problem& problem) override {
    const auto sent = session_.Send(problem);
    if (!sent) return tl::unexpected(sent.error());
    return {};
  }
  tl::expected<client::StepOutcome, Error> Receive() override { return session_.Receive(); }
  tl::expected<void, Error> Close() override { return session_.Close(); }

 private:
  client::Session session_;
};

class CppClient final : public TestedClient {
 public:
  CppClient(client::Client client, std::optional<std::chrono::nanoseconds> deadline)
      : client_(std::move(client)) {
    options_.deadline = deadline;
  }

  Outcome Solve(const Problem& problem) override { return client_.Solve(problem, options_); }
  std::vector<Outcome> SolveBatch(std::span<const Problem> problems) override {
    return client_.SolveBatch(problems, options_);
  }
  tl::expected<void, Error> StreamBatch(std::span<const Problem> problems,
                                        const client::Client::BatchSink& sink) override {
    return client_.StreamBatch(problems, options_, sink);
  }
  tl::expected<std::unique_ptr<TestedSession>, Error> OpenSession() override {
    auto session = client_.OpenSession(options_);
    if (!session) return tl::unexpected(session.error());
    return std::make_unique<CppSession>(std::move(*session));
  }

 private:
  client::Client client_;
  client::SolveOptions options_;
};

}  // namespace

Connected ConnectCpp(const std::string& address, const client::ConnectOptions& options,
                     std::optional<std::chrono::nanoseconds> deadline) {
  auto client = client::Client::Connect(address, options);
  if (!client) return tl::unexpected(client.error());
  return std::make_unique<CppClient>(std::move(*client), deadline);
}

}  // namespace sap::test
