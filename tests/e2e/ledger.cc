#include "tests/e2e/ledger.h"

#include <deque>
#include <random>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

constexpr int kBatch = 8;  // problems of a call
constexpr size_t kMostViolations = 5;

using Clock = std::chrono::steady_clock;

AnswerBits BitsOf(const Outcome& outcome) {
  if (!outcome) return {outcome.error().message};
  return Bits(*outcome);
}

// Steps and problems in words.
std::string Text(const Outcome& outcome) {
  return outcome ? std::string("a solution") : "the error: " + outcome.error().message;
}

void Violate(Ledger* ledger, const std::string& what) {
  if (ledger->violations.size() < kMostViolations) ledger->violations.push_back(what);
}

void CheckOutcome(const client::StepOutcome& outcome, client::Session* reference, int client,
                  int step, Ledger* ledger) {
  const std::string which = "step " + std::to_string(step);
  if (outcome.step_id != static_cast<uint64_t>(step)) {
    Violate(ledger, "step " + std::to_string(outcome.step_id) + " instead of " + which);
  }
  if (!reference->Send(LedgerProblem(client, step))) Violate(ledger, which + " has no reference");
  const auto expected = reference->Receive();
  if (!expected || BitsOf(outcome.solution) != BitsOf(expected->solution)) {
    Violate(ledger, which + " has other bits: " + Text(outcome.solution));
  } else if (outcome.warm_started != expected->warm_started) {
    Violate(ledger, which + (outcome.warm_started ? " is warm" : " is cold"));
  }
}

// The outcomes of a call, each in place of its problem; what came twice or not at all is noted.
std::vector<Outcome> Call(TestedClient* client, CallKind kind,
                          const std::vector<client::Problem>& problems, Ledger* ledger) {
  if (kind == CallKind::kSolve) return {client->Solve(problems.front())};
  if (kind == CallKind::kBatch) return client->SolveBatch(problems);
  std::vector<Outcome> outcomes(problems.size(), tl::unexpected(client::Error{}));
  std::vector<int> times(problems.size(), 0);
  const auto ended = client->StreamBatch(problems, [&](int index, Outcome outcome) {
    ++times[index];
    outcomes[index] = std::move(outcome);
  });
  if (!ended) Violate(ledger, "the call failed: " + ended.error().message);
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] == 1) continue;
    Violate(ledger,
            "problem " + std::to_string(i) + " has " + std::to_string(times[i]) + " outcomes");
  }
  return outcomes;
}

void CheckOutcomes(const std::vector<Outcome>& outcomes, const std::vector<Outcome>& expected,
                   int call, Ledger* ledger) {
  const std::string which = "call " + std::to_string(call);
  if (outcomes.size() != expected.size()) {
    Violate(ledger, which + " has " + std::to_string(outcomes.size()) + " outcomes");
    return;
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (BitsOf(outcomes[i]) == BitsOf(expected[i])) continue;
    Violate(ledger, which + ", problem " + std::to_string(i) + ": " + Text(outcomes[i]) +
                        " instead of " + Text(expected[i]));
  }
}

}  // namespace

client::Problem LedgerProblem(int client, int step) {
  static const client::Problem kMixed = *client::FromMessage(MixedProblem());
  client::Problem problem = kMixed;
  problem.trees.guess_velocity.clear();
  problem.bodies.guess_velocity.clear();
  std::mt19937 random(static_cast<uint32_t>(client * 1'000'003 + step));
  for (double& v : problem.bodies.free_motion_velocity) {
    v += 1e-3 * (static_cast<double>(random()) / 4294967296.0 - 0.5);
  }
  // Some steps are faulty, which is an outcome like any other.
  if (step % 97 == 0) problem.time_step = -1;
  return problem;
}

Ledger DriveSession(TestedClient* served, int client, const Course& course) {
  Ledger ledger;
  auto session = served->OpenSession();
  auto embedded = client::Client::Connect("embedded:", {.threads = 1});
  auto reference = embedded->OpenSession();
  if (!session) {
    Violate(&ledger, "cannot open: " + session.error().message);
    return ledger;
  }
  int sent = 0;
  std::deque<Clock::time_point> starts;
  while (true) {
    while (sent - ledger.answered < kAhead && course.more(sent)) {
      starts.push_back(Clock::now());
      if (const auto done = (*session)->Send(LedgerProblem(client, ++sent)); !done) {
        Violate(&ledger, "step " + std::to_string(sent) + " not sent: " + done.error().message);
        return ledger;
      }
    }
    if (ledger.answered == sent) break;
    const auto outcome = (*session)->Receive();
    if (!outcome) {
      Violate(&ledger,
              "after " + std::to_string(ledger.answered) + " answers: " + outcome.error().message);
      return ledger;
    }
    course.took(Clock::now() - starts.front());
    starts.pop_front();
    const int step = ++ledger.answered;
    ledger.solved += outcome->solution.has_value();
    CheckOutcome(*outcome, &*reference, client, step, &ledger);
    course.after(step);
  }
  const auto closed = (*session)->Close();
  if (!closed) Violate(&ledger, "not closed: " + closed.error().message);
  return ledger;
}

Ledger DriveCalls(TestedClient* served, CallKind kind, int client, const Course& course) {
  Ledger ledger;
  const auto embedded = *ConnectCpp("embedded:", {.threads = 1}, std::nullopt);
  const int size = kind == CallKind::kSolve ? 1 : kBatch;
  for (int sent = 0; course.more(sent);) {
    std::vector<client::Problem> problems;
    for (int i = 0; i < size; ++i) problems.push_back(LedgerProblem(client, ++sent));
    const Clock::time_point start = Clock::now();
    const std::vector<Outcome> outcomes = Call(served, kind, problems, &ledger);
    course.took(Clock::now() - start);
    CheckOutcomes(outcomes, Call(embedded.get(), kind, problems, &ledger), sent / size, &ledger);
    ledger.answered += size;
    for (const Outcome& outcome : outcomes) ledger.solved += outcome.has_value();
    course.after(ledger.answered);
  }
  return ledger;
}

}  // namespace sap::test
