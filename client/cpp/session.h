// A session: a sequence of time steps. A server keeps its allocations and its analysis of the
// contact pattern, and starts each step from the velocities of the last solved step, matched by
// tree_id and body_id, unless the step has a guess.
//
//   auto session = client->OpenSession();
//   while (...) {
//     const auto solution = session->Step(problem);            // send and wait
//   }
//
// Or with several steps in flight; outcomes arrive in the order of the steps:
//
//   session->Send(first);  session->Send(second);
//   const auto outcome = session->Receive();                   // of the first
//
// A step that fails, as for an invalid field, has an error as its outcome and does not end the
// session: the next step starts from the last solved one.
//
// The state of a session is at the client: these velocities, and the steps without an outcome. So
// it outlives connections and servers. After a loss (no connection, a server that shuts down or has
// ended the session as idle) it goes on at any server of the address, within
// ConnectOptions::reconnect_within: every step still has exactly one outcome, in order, with the
// same bits and the same `warm_started`. If no server is found in time, or the deadline has passed,
// the session has ended and every call returns the reason.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/solution.h"
#include "client/cpp/solve_options.h"

namespace sap::client {

// Outcome of one step.
struct StepOutcome {
  uint64_t step_id{0};
  // Whether any tree or body started from its velocity of the last solved step.
  bool warm_started{false};
  tl::expected<Solution, Error> solution;
};

class StepStream;

// Not thread-safe. May outlive its client. The destructor cancels steps in flight.
class Session {
 public:
  explicit Session(std::unique_ptr<StepStream> stream);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Sends a step and waits for its outcome; no other step may be in flight. Without options, those
  // of the session apply. Options of a step have no deadline.
  tl::expected<Solution, Error> Step(const Problem& problem,
                                     const std::optional<SolveOptions>& options = std::nullopt);

  // Sends a step and returns its number, 1, 2, ... If the server's limit of steps in flight is
  // reached, first waits for the oldest outcome and keeps it for Receive. An embedded server solves
  // the step within this call.
  tl::expected<uint64_t, Error> Send(const Problem& problem,
                                     const std::optional<SolveOptions>& options = std::nullopt);

  // Waits for the outcome of the oldest step in flight. An error if there is none, or if the
  // session ended first.
  tl::expected<StepOutcome, Error> Receive();

  // Steps sent whose outcome was not received.
  int in_flight() const;

  // Whether the server has asked the session to move, as before its shutdown. Once the steps
  // that it has are answered, the next one goes to another server if the address has one.
  bool draining() const;

  // Whether steps can be sent: false after the session has ended.
  bool open() const;

  // Ends the session after its steps are solved; outcomes that were not received are discarded.
  tl::expected<void, Error> Close();

 private:
  struct State;

  tl::expected<StepOutcome, Error> ReceiveFromServer();
  tl::expected<void, Error> KeepNextOutcome();

  std::unique_ptr<State> state_;
};

}  // namespace sap::client
