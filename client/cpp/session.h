// A session: problems over time, one step after the other, solved by one server that keeps what it
// has allocated and analyzed, and starts each step from the velocities of the last solved one by
// tree_id and body_id, unless the step brings a guess.
//
//   auto session = client->OpenSession();
//   while (...) {
//     const auto solution = session->Step(problem);            // send and wait
//   }
//
// Or ahead of the answers, which come in the order of the steps:
//
//   session->Send(first);  session->Send(second);
//   const auto outcome = session->Receive();                   // of the first
//
// An error about a step, such as a bad field, is an answer like any other: the session goes on and
// the next step starts from the last solved one. When the session itself has ended (the server
// drains, the deadline has passed), every call returns why. A connection that is lost does not end
// it: the session is resumed on a new one, and every step still has exactly one outcome, in order.
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

// What came of a step.
struct StepOutcome {
  uint64_t step_id{0};
  // Whether trees or bodies started from the velocities of the last solved step.
  bool warm_started{false};
  tl::expected<Solution, Error> solution;
};

class SessionStream;

// Not thread-safe. May outlive its client. Gives up what is under way when it goes.
class Session {
 public:
  explicit Session(std::unique_ptr<SessionStream> stream);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Sends a step and waits for its outcome; no other step may be in flight. Without options of its
  // own a step is solved as the session was opened with; these have no deadline.
  tl::expected<Solution, Error> Step(const Problem& problem,
                                     const std::optional<SolveOptions>& options = std::nullopt);

  // Sends a step and returns its number, 1, 2, ... If the server has as many in flight as it takes
  // in, waits for the oldest outcome first, and keeps it for Receive. Embedded, it is solved here
  // and now.
  tl::expected<uint64_t, Error> Send(const Problem& problem,
                                     const std::optional<SolveOptions>& options = std::nullopt);

  // Waits for the outcome of the oldest step that is in flight. An error if there is none, or if
  // the session has ended before it came.
  tl::expected<StepOutcome, Error> Receive();

  // Steps sent and not received.
  int in_flight() const;

  // Whether the server has said that it will go: close the session and open one elsewhere, before
  // it ends.
  bool draining() const;

  // Whether steps are taken: false once the session has ended.
  bool open() const;

  // Ends the session in good order; outcomes that were not received are lost.
  tl::expected<void, Error> Close();

 private:
  struct State;

  tl::expected<StepOutcome, Error> ReceiveFromServer();
  tl::expected<void, Error> KeepNextOutcome();

  std::unique_ptr<State> state_;
};

}  // namespace sap::client
