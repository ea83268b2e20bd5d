// Options of a call: how to solve, when to stop, what to return.
#pragma once

#include <atomic>
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

// How a call is named, and ended by another thread.
struct CallOptions {
  // Set by any thread or signal handler, it ends the call with kCancelled, some 20 ms later where a
  // server is waited for. Of a session: its opening. May be null; must outlive the call.
  const std::atomic<bool>* cancelled{nullptr};
  // Names the call in the server's log and in its errors: printable ASCII, at most 256 characters.
  // Empty: the server chooses a name.
  std::string request_id{};
  // W3C trace context, for the server's log: printable ASCII, at most 256 characters.
  std::string traceparent{};
};

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
  CallOptions call{};  // not read in the options of a step
};

}  // namespace sap::client
