#include "tests/e2e/hostile/neighbour.h"

#include <gtest/gtest.h>

#include <future>

#include "client/cpp/transport/message_conversion.h"
#include "tests/e2e/hostile/requests.h"
#include "tests/support/raw_socket.h"
#include "tests/support/scenes.h"

namespace sap::test::hostile {
namespace {

using client::Error;
using client::ErrorCode;

constexpr int kAtOnce = 96;
constexpr size_t kMostFailures = 3;

Question Ask(const client::Problem& problem) {
  auto embedded = client::Client::Connect("embedded:", {.threads = 1});
  return {problem, Bits(*embedded->Solve(problem))};
}

std::string Describe(const Error& error) {
  return std::string(Name(error.code)) + " " + error.reason + ": " + error.message;
}

std::string Judge(const Outcome& solution, const AnswerBits& answer) {
  if (!solution) return Describe(solution.error());
  return Bits(*solution) == answer ? "" : "other bits";
}

Connected ConnectTo(const Target& target, const std::string& address, Language language) {
  return Connect(language, address, OptionsFor(target), kHangLimit);
}

}  // namespace

client::ConnectOptions OptionsFor(const Target& target) {
  client::ConnectOptions options{.connect_timeout = kHangLimit};
  options.credentials.token_file = target.token_file;
  options.credentials.server_ca = target.server_ca_file;
  return options;
}

Neighbour::Neighbour(Target target, Language language)
    : target_(std::move(target)),
      language_(language),
      small_(Ask(SmallProblem())),
      queued_(Ask(SphereBlock(3))),
      long_(Ask(SphereBlock(5))) {
  auto client = ConnectTo(target_, target_.address, language);
  EXPECT_TRUE(client.has_value()) << client.error().message;
  if (client) client_ = std::move(*client);
}

std::string Neighbour::Solve(const Question& question) {
  return Judge(client_->Solve(question.problem), question.answer);
}

std::string Neighbour::SolveSmall() { return Solve(small_); }

std::string Neighbour::SolveByNewList() {
  const std::string list = target_.address + "," + target_.address;
  const auto client = ConnectTo(target_, list, language_);
  if (!client) return Describe(client.error());
  return Judge((*client)->Solve(small_.problem), small_.answer);
}

std::string Neighbour::SolveQueued() { return Solve(queued_); }

std::string Neighbour::SolveManyAtOnce() {
  std::vector<std::future<std::string>> calls;
  for (int i = 0; i < kAtOnce; ++i) {
    calls.push_back(std::async(std::launch::async, [this] { return Solve(long_); }));
  }
  std::string wrong;
  for (auto& call : calls) {
    if (const std::string what = call.get(); !what.empty()) wrong = what;
  }
  return wrong;
}

std::string Neighbour::StepNewSession() {
  const auto session = client_->OpenSession();
  if (!session) return Describe(session.error());
  const std::string wrong = Judge((*session)->Step(small_.problem), small_.answer);
  const auto closed = (*session)->Close();
  if (!wrong.empty() || closed) return wrong;
  return Describe(closed.error());
}

std::string Neighbour::BeRejected() {
  if (endless_ == nullptr) {
    endless_ = std::make_unique<HeldCall>(target_, OpenChannel(target_), kSolve,
                                          ToBuffer(EndlessRequest()));
  }
  const Outcome solution = client_->Solve(small_.problem);
  if (solution) return "answered over a limit";
  if (solution.error().code == ErrorCode::kResourceExhausted) return "";
  return Describe(solution.error());
}

std::string Neighbour::ScrapeMetrics() {
  const std::string text = HttpGet(target_.metrics_address, "/metrics");
  return text.find("sap_build_info") != std::string::npos ? "" : "no metrics";
}

Visits VisitUntil(Neighbour* neighbour, Neighbour::Visit visit,
                  const std::function<bool(size_t)>& enough) {
  using Clock = std::chrono::steady_clock;
  Visits visits;
  while (!enough(visits.latencies_s.size()) && visits.failures.size() < kMostFailures) {
    const auto begin = Clock::now();
    const std::string wrong = (neighbour->*visit)();
    const std::chrono::duration<double> took = Clock::now() - begin;
    visits.latencies_s.push_back(took.count());
    if (!wrong.empty()) visits.failures.push_back(wrong);
  }
  return visits;
}

}  // namespace sap::test::hostile
