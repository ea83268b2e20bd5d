// A well-behaved client, of any language, during an attack: its answers come, have the right bits,
// and are timed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/clients/tested_client.h"
#include "tests/e2e/hostile/held_calls.h"
#include "tests/e2e/hostile/target.h"
#include "tests/support/solution_bits.h"

namespace sap::test::hostile {

// A call that is not answered within this time counts as hanging.
inline constexpr std::chrono::seconds kHangLimit{60};

// A problem and the bits of its solution, from this process.
struct Question {
  client::Problem problem;
  AnswerBits answer;
};

// Options by which the client library gets to the target.
client::ConnectOptions OptionsFor(const Target& target);

class Neighbour {
 public:
  // The target has the neighbour's token.
  Neighbour(Target target, Language language);

  // Calls that it repeats. Each returns an error, or nothing.
  using Visit = std::string (Neighbour::*)();
  std::string SolveSmall();       // on the thread that receives it
  std::string SolveByNewList();   // the same, as a new client with a list of servers
  std::string SolveQueued();      // on a thread of the arena
  std::string SolveManyAtOnce();  // by calls, most of which wait in the queue
  std::string StepNewSession();   // opens, steps, closes
  std::string BeRejected();  // at --max-client-calls 1, during a call of its own without an end
  std::string ScrapeMetrics();

 private:
  std::string Solve(const Question& question);

  const Target target_;
  const Language language_;
  std::unique_ptr<TestedClient> client_;
  const Question small_;
  const Question queued_;
  const Question long_;
  std::unique_ptr<HeldCall> endless_;
};

// Latencies of visits [s], and what went wrong.
struct Visits {
  std::vector<double> latencies_s;
  std::vector<std::string> failures;
};

// Visits until `enough(number of visits)`, or until three have failed.
Visits VisitUntil(Neighbour* neighbour, Neighbour::Visit visit,
                  const std::function<bool(size_t)>& enough);

}  // namespace sap::test::hostile
