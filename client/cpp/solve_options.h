// How a problem is to be solved and answered.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "solver/problem/solver_options.h"

namespace sap::client {

// Who goes first at a server whose threads are all busy. Embedded, nobody waits: the calling thread
// solves.
enum class Priority : uint8_t { kNormal, kHigh };

struct SolveOptions {
  SolverOptions solver;
  // Time for the solve; when it has run out, islands return their best iterate. Of a session: for
  // each step; of a batch: for all of it.
  std::optional<std::chrono::nanoseconds> time_budget;
  // Time after which the call is given up with kDeadlineExceeded. The server returns the best
  // iterate a little before that, if it can. Of a session: of the whole of it.
  std::optional<std::chrono::nanoseconds> deadline;
  // Fields of Solution to return, by name ("velocity", "islands", ...); empty: all.
  std::vector<std::string> response_mask;
  Priority priority{Priority::kNormal};
};

}  // namespace sap::client
