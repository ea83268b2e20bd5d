// Solves one scene by several calls at once: islands, found by the solver's own code, are dealt to
// shards, and every shard is a call of its own. The calls go to several servers, over which the
// backend spreads them, or over several connections to one server.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "client/cpp/backend/backend.h"
#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/solution.h"
#include "client/cpp/solve_options.h"
#include "solver/parallel/forked_threads.h"
#include "solver/split/shards.h"

namespace sap::client {

// Thread-safe.
class SplitSolver {
 public:
  // The address and options of the backend that Solve gets.
  SplitSolver(std::string address, const ConnectOptions& options)
      : address_(std::move(address)), options_(options) {
    options_.connect_timeout = std::chrono::nanoseconds(0);
    options_.cancelled = nullptr;
  }

  // Whether a scene may be divided. `servers` as for Solve.
  bool Divides(int servers) const { return servers != 1 || options_.scene_connections > 1; }
  // Whether this scene is large enough to be divided over several connections to one server.
  bool Divides(const ContactProblemView& problem) const;

  // Solves on `servers` servers; kServersOfAddress: as many as the address has. A call in the
  // background needs a thread of this object until it ends. With a pin, as part of what has one
  // build; null: on its own.
  void Solve(Backend* backend, const ContactProblemView& problem, const SolveOptions& options,
             int servers, Timeout deadline, Where where, BuildPin* pin, Done<SolveOutcome> done);

  // The outcome of shards. Nothing if the problem is to be sent whole: there is one server and one
  // connection to it, splitting would not pay, the servers that answered are of two builds, one
  // server has no room for more calls, or the problem is refused, as the error must name the fields
  // of the whole.
  std::optional<SolveOutcome> TrySplit(Backend* backend, const ContactProblemView& problem,
                                       const SolveOptions& options, int servers, Timeout deadline,
                                       BuildPin* pin = nullptr);

 private:
  int NumServers(int servers) const;
  // How many connections a problem of this size is worth. 1: it is sent whole.
  int NumConnections(size_t problem_bytes) const;
  // This backend, and one per further connection, which are made when they are first needed. Fewer
  // where one cannot be made.
  std::vector<Backend*> Connections(Backend* first, int count);
  // Threads of one server; the others are taken to be alike. 0: it does not answer.
  int ThreadsOfServer(Backend* backend, const CallOptions& call, Timeout deadline);

  const std::string address_;
  ConnectOptions options_;  // of further connections
  std::atomic<int> threads_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Backend>> further_;
  std::unique_ptr<ForkedThreads> background_;  // null before the first call in the background
};

// Consecutive islands for each of the parts, whose predicted times are about equal: neighbours stay
// together, and a server of many threads shares the largest island among them.
std::vector<std::vector<int>> DealInOrder(std::span<const double> times_s, int parts);

// Solves the shards at the same time, by the backends in turn. As TrySplit: nothing if one of them
// is refused, or answered by another build than the others.
std::optional<SolveOutcome> SolveShards(std::span<Backend* const> backends, const Shards& shards,
                                        const SolveOptions& options, Timeout deadline,
                                        BuildPin* pin = nullptr);

}  // namespace sap::client
