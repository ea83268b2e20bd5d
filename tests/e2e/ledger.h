// The ledger: the steps that clients sent, and the outcome of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "tests/support/solution_bits.h"

namespace sap::test {

// The problem of one step of one client; always the same for the same numbers.
client::Problem LedgerProblem(int client, int step);

struct Ledger {
  int answered{0};
  std::vector<std::string> violations;  // in words; the first few
};

// Drives one session of so many steps, some ahead of their answers, and checks that every step has
// exactly one outcome, in order, with the bits that the same steps have in this process. `after` is
// called after each outcome with the number of those that have come.
Ledger DriveSession(client::Client* served, int client, int steps,
                    const std::function<void(int)>& after);

}  // namespace sap::test
