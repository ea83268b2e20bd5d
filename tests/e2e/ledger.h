// The ledger: the problems that clients sent, in sessions or calls, and the outcome of each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "tests/e2e/clients/tested_client.h"
#include "tests/support/solution_bits.h"

namespace sap::test {

// The problem of one step of one client; always the same for the same numbers.
client::Problem LedgerProblem(int client, int step);

// Steps of a session in flight.
inline constexpr int kAhead = 3;

struct Ledger {
  int answered{0};
  int solved{0};                        // of these; the others have errors, as a few should
  std::vector<std::string> violations;  // in words; the first few
};

// Callbacks of a driver.
struct Course {
  // Whether the next problem or call is to be sent, after so many.
  std::function<bool(int sent)> more;
  // Called after each outcome with the number of those that have come.
  std::function<void(int answered)> after = [](int) {};
  // Called with the time from the sending of a step, or of a call, to its outcome.
  std::function<void(std::chrono::nanoseconds)> took = [](std::chrono::nanoseconds) {};
};

// Drives one session, some steps ahead of their answers, and checks that every step has exactly one
// outcome, in order, with the bits that the same steps have in this process.
Ledger DriveSession(TestedClient* served, int client, const Course& course);

enum class CallKind { kSolve, kBatch, kStreamBatch };

// Drives one call after the other, of one problem or of several, and checks that every problem has
// exactly one outcome, in place of its problem, with the bits that it has in this process.
Ledger DriveCalls(TestedClient* served, CallKind kind, int client, const Course& course);

}  // namespace sap::test
