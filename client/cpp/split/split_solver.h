// Solves one scene on several servers at once: islands, found by the solver's own code, are dealt
// to shards; every shard is a call of its own, and the backend spreads calls over servers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/solution.h"
#include "client/cpp/solve_options.h"
#include "client/cpp/transport/backend.h"
#include "solver/parallel/forked_threads.h"
#include "solver/split/shards.h"

namespace sap::client {

// Thread-safe.
class SplitSolver {
 public:
  // The address that the backend is connected to.
  explicit SplitSolver(std::string address) : address_(std::move(address)) {}

  // Solves on `servers` servers; kServersOfAddress: as many as the address has. A call in the
  // background needs a thread of this object until it ends.
  void Solve(Backend* backend, const ContactProblemView& problem, const SolveOptions& options,
             int servers, Timeout deadline, Where where, Done<Backend::SolveOutcome> done);

  // The outcome of shards. Nothing if the problem is to be sent whole: there is one server,
  // splitting would not pay, the servers that answered are of two builds, or the problem is
  // refused, as the error must name the fields of the whole.
  std::optional<Backend::SolveOutcome> TrySplit(Backend* backend, const ContactProblemView& problem,
                                                const SolveOptions& options, int servers,
                                                Timeout deadline);

 private:
  int NumServers(int servers) const;
  // Threads of one server; the others are taken to be alike. 0: it does not answer.
  int ThreadsOfServer(Backend* backend, const CallOptions& call, Timeout deadline);

  const std::string address_;
  std::atomic<int> threads_{0};
  std::mutex mutex_;
  std::unique_ptr<ForkedThreads> background_;  // null before the first call in the background
};

// Solves the shards at the same time. As TrySplit: nothing if one of them is refused, or answered
// by another build than the others.
std::optional<Backend::SolveOutcome> SolveShards(Backend* backend, const Shards& shards,
                                                 const SolveOptions& options, Timeout deadline);

}  // namespace sap::client
