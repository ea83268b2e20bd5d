// The client: solves contact problems on a server or within this process, with the same types, the
// same errors and the same bits.
//
//   auto client = Client::Connect("127.0.0.1:50051");     // or "unix:/run/sap.sock", "embedded:"
//   if (!client) return Report(client.error());
//   const auto solution = client->Solve(problem);
//   if (!solution) return Report(solution.error());
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/connect_options.h"
#include "client/cpp/derivatives.h"
#include "client/cpp/error.h"
#include "client/cpp/outcomes.h"
#include "client/cpp/problem.h"
#include "client/cpp/replay.h"
#include "client/cpp/server_info.h"
#include "client/cpp/session.h"
#include "client/cpp/solution.h"
#include "client/cpp/solve_options.h"
#include "client/cpp/worlds.h"

namespace sap::client {

// Thread-safe: calls may run concurrently.
//
// A call takes problems as objects, or as views of arrays that outlive it, and blocks. Each has a
// form that does not, with the prefix Start: it returns at once and calls `done` once, from a
// thread of the client, which waits for all such calls. So `done` should only pass the outcome on.
// The arrays, the views and `done` must live until then. Before a
// client is destroyed, its calls in the background end, those at servers as cancelled; `done` must
// not destroy it.
class Client {
 public:
  using SolveOutcome = client::SolveOutcome;
  using DerivativesOutcome = client::DerivativesOutcome;
  using BatchSink = client::BatchSink;

  // Address: HOST:PORT, unix:PATH, or "embedded:" for a server within this process. Of several
  // servers: HOST:PORT,HOST:PORT,..., dns:///NAME:PORT or xds:///NAME.
  //
  // A child of fork() can use and connect no client of servers if its parent had one, and is told
  // so with kFailedPrecondition; "embedded:" goes on in it.
  static tl::expected<Client, Error> Connect(const std::string& address,
                                             const ConnectOptions& options = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // With servers > 1 a scene of many large islands is solved on several servers at once: whole
  // islands are dealt to `servers` shards, a call each, which an address list or a balancer
  // spreads. Its answer has the bits of the undivided one; phases are timed as in the slowest
  // shard. The scene stays whole where splitting would not pay, and in an embedded server. 0:
  // kServersOfAddress.
  SolveOutcome Solve(const Problem& problem, const SolveOptions& options = {}, int servers = 1) {
    return Solve(ViewOf(problem), options, servers);
  }
  SolveOutcome Solve(const ContactProblemView& problem, const SolveOptions& options = {},
                     int servers = 1);
  void StartSolve(const ContactProblemView& problem, const SolveOptions& options, int servers,
                  Done<SolveOutcome> done);

  // Solves independent problems concurrently. One outcome per problem, in their order: a problem
  // that breaks a rule does not fail the others. If the call itself fails, every outcome is its
  // error.
  std::vector<SolveOutcome> SolveBatch(std::span<const Problem> problems,
                                       const SolveOptions& options = {});
  std::vector<SolveOutcome> SolveBatch(std::span<const ContactProblemView> problems,
                                       const SolveOptions& options = {});
  void StartSolveBatch(std::span<const ContactProblemView> problems, const SolveOptions& options,
                       Done<std::vector<SolveOutcome>> done);

  // As SolveBatch, but passes each outcome to the sink as soon as it arrives, with the index of its
  // problem: in any order, one call of the sink at a time. Returns the error of the call itself.
  tl::expected<void, Error> StreamBatch(std::span<const Problem> problems,
                                        const SolveOptions& options, const BatchSink& sink);
  tl::expected<void, Error> StreamBatch(std::span<const ContactProblemView> problems,
                                        const SolveOptions& options, const BatchSink& sink);
  // The sink is called as `done` is.
  void StartStreamBatch(std::span<const ContactProblemView> problems, const SolveOptions& options,
                        BatchSink sink, Done<tl::expected<void, Error>> done);

  // The solution of a problem with its gradients, one per cotangent, and its changes along the
  // tangents of the options; see derivatives.h.
  DerivativesOutcome Differentiate(const Problem& problem, std::span<const Cotangent> cotangents,
                                   const DifferentiateOptions& options = {}) {
    return Differentiate(ViewOf(problem, cotangents, options));
  }
  DerivativesOutcome Differentiate(const DifferentiateView& request);
  void StartDifferentiate(const DifferentiateView& request, Done<DerivativesOutcome> done);

  // Differentiates independent problems concurrently, with outcomes as those of SolveBatch.
  std::vector<DerivativesOutcome> DifferentiateBatch(std::span<const DifferentiateRequest> requests,
                                                     const BatchLimits& limits = {});
  std::vector<DerivativesOutcome> DifferentiateBatch(std::span<const DifferentiateView> requests,
                                                     const BatchLimits& limits = {});
  void StartDifferentiateBatch(std::span<const DifferentiateView> requests,
                               const BatchLimits& limits,
                               Done<std::vector<DerivativesOutcome>> done);

  // Steps worlds of MuJoCo at servers; see worlds.h. Failures of worlds are in their outcomes. Not
  // in an embedded server.
  tl::expected<void, Error> Advance(const WorldsView& worlds, const WorldsOptions& options = {});
  void StartAdvance(const WorldsView& worlds, const WorldsOptions& options,
                    Done<tl::expected<void, Error>> done);

  // Opens a session, a stream of problems over time; see session.h.
  tl::expected<Session, Error> OpenSession(const SolveOptions& options = {},
                                           const SessionOptions& session_options = {});

  // Solves every problem of a recording file again and compares the answers; see replay.h.
  tl::expected<ReplayReport, Error> Replay(const std::string& recording);

  // Both end within five seconds, or at the deadline.
  tl::expected<ServerInfo, Error> Info(
      const CallOptions& call = {},
      std::optional<std::chrono::nanoseconds> deadline = std::nullopt);
  void StartInfo(const CallOptions& call, Done<tl::expected<ServerInfo, Error>> done);

  // Whether the server takes calls.
  tl::expected<bool, Error> Health(const CallOptions& call = {});
  void StartHealth(const CallOptions& call, Done<tl::expected<bool, Error>> done);

 private:
  class Calls;

  explicit Client(std::unique_ptr<Calls> calls);

  std::unique_ptr<Calls> calls_;
};

}  // namespace sap::client
