// Where the calls of a client are answered: by servers, or by the engine in this process. The
// clients for C++ and for C call it. Internal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "client/cpp/backend/call_types.h"
#include "client/cpp/connect_options.h"
#include "client/cpp/outcomes.h"
#include "client/cpp/server_info.h"
#include "client/cpp/session.h"
#include "client/cpp/solve_options.h"
#include "client/cpp/worlds.h"
#include "solver/run/island_forecast.h"

namespace sap::client {

class BuildPin;

// An open session.
class StepStream {
 public:
  struct State {
    int unanswered{0};     // steps without an outcome
    int arrived{0};        // outcomes that were not taken
    int max_in_flight{1};  // steps that are now accepted without an outcome
    bool draining{false};  // the server has asked the session to move
    bool opening{false};
    std::optional<Error> ended{};  // why no more steps can be sent

    bool OutcomeReady() const { return arrived > 0 || unanswered == 0 || ended.has_value(); }
    bool RoomReady() const { return unanswered < max_in_flight || ended.has_value(); }
  };

  virtual ~StepStream() = default;
  virtual State state() const = 0;
  // Waits until the state is as asked. False: it was not so within the limit.
  virtual bool Await(const std::function<bool(const State&)>& is_ready, const WaitLimit& limit) = 0;
  // Waits at most until the step is on its way. The session must not have ended, and must have
  // room. A step that is solved within this call, as by an embedded server, ends soon after the
  // flag of the limit is set.
  virtual void Send(uint64_t step_id, const ContactProblemView& problem,
                    const std::optional<SolveOptions>& options, const WaitLimit& limit) = 0;
  // An outcome that has arrived.
  virtual StepOutcome Take() = 0;
  // Makes the steps from this one on not to have been sent.
  virtual Status Withdraw(uint64_t step_id) = 0;
  // Forgets the velocities. No step may be in flight.
  virtual void Reset() = 0;
  // Ends the session once its steps are solved.
  virtual Status Close() = 0;
  virtual void Notify(std::function<void()> changed) = 0;
};

// Whether a call runs while its caller waits, or after it has returned.
enum class Where : uint8_t { kHere, kInBackground };

// One outcome per problem of a batch, or the error of the call itself.
template <typename Outcome>
using Outcomes = tl::expected<std::vector<Outcome>, Error>;

// Thread-safe. Each call passes its outcome to `done`.
class Backend {
 public:
  using Problems = std::span<const ContactProblemView>;

  virtual ~Backend() = default;

  // Whether the engine in this process answers, which a child of fork() can go on with.
  virtual bool in_process() const { return false; }

  // With a pin, as part of what has one build. It must live until `done`. Null: on its own.
  virtual void Solve(const ContactProblemView& problem, const SolveOptions& options,
                     Timeout deadline, Where where, BuildPin* pin, Done<SolveOutcome> done) = 0;
  // On several servers, or several connections to one, where that pays; see Client::Solve.
  virtual void SolveDivided(const ContactProblemView& problem, const SolveOptions& options,
                            int servers, Timeout deadline, Where where, Done<SolveOutcome> done) {
    static_cast<void>(servers);
    Solve(problem, options, deadline, where, nullptr, std::move(done));
  }
  virtual void SolveBatch(Problems problems, const SolveOptions& options, Timeout deadline,
                          Where where, Done<Outcomes<SolveOutcome>> done) = 0;
  // One call of the sink at a time, and one for each problem.
  virtual void StreamBatch(Problems problems, const SolveOptions& options, Timeout deadline,
                           BatchSink sink, Where where, Done<Status> done) = 0;
  virtual void Differentiate(const DifferentiateView& request, Timeout deadline, Where where,
                             Done<DerivativesOutcome> done) = 0;
  virtual void DifferentiateBatch(std::span<const DifferentiateView> requests,
                                  const BatchLimits& limits, Timeout deadline, Where where,
                                  Done<Outcomes<DerivativesOutcome>> done) = 0;
  virtual tl::expected<IslandForecast, Error> FindIslands(const ContactProblemView&) {
    return tl::unexpected(Error{ErrorCode::kUnimplemented,
                                "islands are found in process: connect to \"embedded:\"", ""});
  }
  // Worlds that CheckWorlds has taken.
  virtual void Advance(const WorldsView& worlds, const WorldsOptions& options, Timeout deadline,
                       Where where, Done<Status> done) {
    static_cast<void>(worlds), static_cast<void>(options), static_cast<void>(deadline);
    static_cast<void>(where);
    done(tl::unexpected(Error{ErrorCode::kUnimplemented,
                              "worlds are stepped by servers; in this process by the functions of "
                              "client/mujoco/sap_mujoco.h"}));
  }
  virtual tl::expected<std::unique_ptr<StepStream>, Error> OpenSession(
      const SolveOptions& options, const SessionOptions& session_options, Timeout deadline) = 0;
  // Both end within five seconds.
  virtual void Info(const CallOptions& call, Timeout deadline, Where where,
                    Done<tl::expected<ServerInfo, Error>> done) = 0;
  virtual void Health(const CallOptions& call, Where where,
                      Done<tl::expected<bool, Error>> done) = 0;
};

// The outcome of a call that runs here: start(Where::kHere, done).
template <typename Outcome, typename Start>
Outcome Await(const Start& start) {
  std::optional<Outcome> outcome;
  start(Where::kHere, [&](Outcome arrived) { outcome = std::move(arrived); });
  return *std::move(outcome);
}

inline tl::expected<ServerInfo, Error> InfoOf(Backend* backend, const CallOptions& call,
                                              Timeout deadline = std::nullopt) {
  using Outcome = tl::expected<ServerInfo, Error>;
  return Await<Outcome>([&](Where where, Done<Outcome> done) {
    backend->Info(call, deadline, where, std::move(done));
  });
}

// The engine in this process, without messages.
std::unique_ptr<Backend> EmbeddedBackend(const ConnectOptions& options);

// The backend of an address. client/cpp/connect.cc has it for "embedded:" and servers;
// libsap_islands, which calls no server, has a definition of its own (client/c/no_transport.cc).
tl::expected<std::unique_ptr<Backend>, Error> Connect(const std::string& address,
                                                      const ConnectOptions& options);

}  // namespace sap::client
