// A session: a sequence of time steps. A server keeps its allocations and its analysis of the
// contact pattern, and starts each step from the velocities of the last solved step, matched by
// tree_id and body_id, unless the step has a guess.
//
//   auto session = client->OpenSession();
//   while (...) {
//     const auto solution = session->Step(problem);            // send and wait
//   }
//
// With several steps in flight, outcomes arrive in the order of the steps:
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
// SessionOptions::reconnect_within: every step still has exactly one outcome, in order, with the
// same bits and the same `warm_started`. If no server is found in time, or only servers of another
// build than that of the outcomes, or the deadline has passed, the session has ended and every call
// returns the reason.
//
// Waiting can be bounded and ended by another thread: AwaitOutcome waits as Receive would, and
// AwaitRoom as Send would, until a deadline or a cancellation; the call after it does not wait. A
// program with an event loop of its own never waits: it opens the session in the background, and
// calls Receive and Send when it was notified and OutcomeReady and RoomReady say so.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tl/expected.hpp>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/solution.h"
#include "client/cpp/solve_options.h"

namespace sap::client {

struct SessionOptions {
  // As that of ConnectOptions, for this session; absent: that one.
  std::optional<std::chrono::nanoseconds> reconnect_within{};
  // Whether one thread of the client serves the session, together with all others of this kind. It
  // goes on while nobody waits for it; OpenSession returns at once, while opening() is true. Else
  // the thread that waits serves it, which takes less time per step. Without effect on an embedded
  // server.
  bool background{false};
  // Whether OpenSession returns at once also where the thread that waits serves the session. It is
  // opened while somebody waits for it, as in AwaitOpen.
  bool opens_later{false};
  // As that of ConnectOptions, for this session; absent: that one.
  std::optional<bool> low_latency{};
};

// How long to wait.
struct WaitLimit {
  const std::atomic<bool>* cancelled{nullptr};  // by another thread, or null
  std::chrono::steady_clock::time_point until{std::chrono::steady_clock::time_point::max()};
};

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
                                     const std::optional<SolveOptions>& options = std::nullopt) {
    return Step(ViewOf(problem), options);
  }
  // The same, within a limit: beyond it kCancelled, and as if the step had not been sent.
  tl::expected<Solution, Error> Step(const ContactProblemView& problem,
                                     const std::optional<SolveOptions>& options = std::nullopt,
                                     const WaitLimit& limit = {});

  // Sends a step and returns its number, 1, 2, ... If the server's limit of steps in flight is
  // reached, first waits for the oldest outcome and keeps it for Receive. An embedded server solves
  // the step within this call. The arrays are copied.
  tl::expected<uint64_t, Error> Send(const Problem& problem,
                                     const std::optional<SolveOptions>& options = std::nullopt) {
    return Send(ViewOf(problem), options);
  }
  // The same, within a limit: beyond it kCancelled, and the step is not sent.
  tl::expected<uint64_t, Error> Send(const ContactProblemView& problem,
                                     const std::optional<SolveOptions>& options = std::nullopt,
                                     const WaitLimit& limit = {});

  // Waits for the outcome of the oldest step in flight. An error if there is none, or if the
  // session ended first.
  tl::expected<StepOutcome, Error> Receive();

  // Whether Receive, or Send, would return without waiting, if only with the error of the session.
  bool OutcomeReady() const;
  bool RoomReady() const;
  // Wait for that. False: it was not so within the limit.
  bool AwaitOutcome(const WaitLimit& limit);
  bool AwaitRoom(const WaitLimit& limit);
  // Waits until the session has been opened, or has ended.
  bool AwaitOpen(const WaitLimit& limit);

  // Sets what is called after each change that OutcomeReady, RoomReady or opening() may show. Only
  // in the background, by the thread that serves the session or within its functions, so it should
  // only pass the news on. It is not called any more once this has set another one, or the session
  // is destroyed.
  void Notify(std::function<void()> changed);

  // Makes the step and all later ones not to have been sent, unless the server is embedded, which
  // has solved them: outcomes of them that were not
  // received are dropped, and the next step starts from the last one solved before them. An error
  // if the session has ended, or ends by this because it may not reconnect.
  tl::expected<void, Error> Withdraw(uint64_t step_id);

  // Makes the next step start as the first one of a session, of any build. An error if steps are in
  // flight, or if the session has ended.
  tl::expected<void, Error> Reset();

  // Steps sent whose outcome was not received.
  int in_flight() const;

  // Whether the server has asked the session to move, as before its shutdown. Once the steps
  // that it has are answered, the next one goes to another server if the address has one.
  bool draining() const;

  // Whether the session is still being opened. Steps may be sent.
  bool opening() const;

  // Whether steps can be sent: false after the session has ended.
  bool open() const;

  // Why the session has ended; absent: it has not.
  std::optional<Error> end_reason() const;

  // Ends the session after its steps are solved; outcomes that were not received are discarded.
  tl::expected<void, Error> Close();

 private:
  std::unique_ptr<StepStream> stream_;
  uint64_t last_step_id_{0};
  std::optional<Error> closed_;
};

}  // namespace sap::client
