// Options of a call: how to solve, when to stop, what to return.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "solver/problem/solver_options.h"

namespace sap::client {

// Order among the problems that wait for a thread of the server. Without effect on an embedded
// server, which solves on the calling thread.
enum class Priority : uint8_t { kNormal, kHigh };

// As `servers` of Client::Solve: as many as the client's address has. That is the length of a list
// "A:1,B:2", or the addresses that the name in "dns:///NAME:PORT" has now, and 1 of any other.
inline constexpr int kServersOfAddress = 0;

struct SolveOptions {
  SolverOptions solver;
  // Time for the solve; when it is used up, islands return their best iterate. In a session it is
  // that of each step, in a batch that of the whole batch.
  std::optional<std::chrono::nanoseconds> time_budget;
  // Time after which the call fails with kDeadlineExceeded. The server stops the solve shortly
  // before it and returns the best iterate, if the answer then arrives in time. In a session it is
  // that of the whole session.
  std::optional<std::chrono::nanoseconds> deadline;
  // Fields of Solution to return, by name ("velocity", "islands", ...); empty: all.
  std::vector<std::string> response_mask;
  Priority priority{Priority::kNormal};
};

}  // namespace sap::client
