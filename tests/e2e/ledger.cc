#include "tests/e2e/ledger.h"

#include <random>

#include "client/cpp/transport/message_conversion.h"
#include "tests/support/scenes.h"

namespace sap::test {
namespace {

constexpr int kAhead = 3;
constexpr size_t kMostViolations = 5;

AnswerBits BitsOf(const tl::expected<client::Solution, client::Error>& solution) {
  if (!solution) return {solution.error().message};
  v1::ContactSolution message;
  client::ToMessage(*solution, &message);
  return Bits(message);
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
    Violate(ledger, which + " has other bits");
  } else if (outcome.warm_started != expected->warm_started) {
    Violate(ledger, which + (outcome.warm_started ? " is warm" : " is cold"));
  }
}

}  // namespace

client::Problem LedgerProblem(int client, int step) {
  static const client::Problem kMixed = *client::FromMessage(MixedProblem());
  client::Problem problem = kMixed;
  problem.trees.guess_velocity.clear();
  problem.bodies.guess_velocity.clear();
  problem.bodies.body_id = {7, 9};
  std::mt19937 random(static_cast<uint32_t>(client * 1'000'003 + step));
  for (double& v : problem.bodies.free_motion_velocity) {
    v += 1e-3 * (static_cast<double>(random()) / 4294967296.0 - 0.5);
  }
  // Some steps are faulty, which is an outcome like any other.
  if (step % 97 == 0) problem.time_step = -1;
  return problem;
}

Ledger DriveSession(client::Client* served, int client, int steps,
                    const std::function<void(int)>& after) {
  Ledger ledger;
  auto session = served->OpenSession();
  auto embedded = client::Client::Connect("embedded:", {.threads = 1});
  auto reference = embedded->OpenSession();
  if (!session) {
    Violate(&ledger, "cannot open: " + session.error().message);
    return ledger;
  }
  int sent = 0;
  while (ledger.answered < steps) {
    while (sent < steps && session->in_flight() < kAhead) {
      if (const auto id = session->Send(LedgerProblem(client, ++sent)); !id) {
        Violate(&ledger, "step " + std::to_string(sent) + " not sent: " + id.error().message);
        return ledger;
      }
    }
    const auto outcome = session->Receive();
    if (!outcome) {
      Violate(&ledger,
              "after " + std::to_string(ledger.answered) + " answers: " + outcome.error().message);
      return ledger;
    }
    const int step = ++ledger.answered;
    CheckOutcome(*outcome, &*reference, client, step, &ledger);
    after(step);
  }
  const auto closed = session->Close();
  if (!closed) Violate(&ledger, "not closed: " + closed.error().message);
  return ledger;
}

}  // namespace sap::test
