// Solves one scene on several servers at once: islands, found by the solver's own code, are dealt
// to shards; every shard is a call of its own, and the backend spreads calls over servers.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "client/cpp/error.h"
#include "client/cpp/problem.h"
#include "client/cpp/solution.h"
#include "client/cpp/solve_options.h"
#include "client/cpp/split/shards.h"
#include "client/cpp/transport/backend.h"

namespace sap::client {

// Thread-safe.
class SplitSolver {
 public:
  // The address that the backend is connected to.
  explicit SplitSolver(std::string address) : address_(std::move(address)) {}

  // The outcome of a solve on `servers` servers; kServersOfAddress: as many as the address has.
  // Nothing if the problem is to be sent whole: there is one server, splitting would not pay, or
  // the problem is refused, as the error must name the fields of the whole.
  std::optional<tl::expected<Solution, Error>> Solve(Backend* backend, const Problem& problem,
                                                     const SolveOptions& options, int servers,
                                                     Backend::Timeout deadline);

 private:
  int NumServers(int servers) const;
  // Threads of one server; the others are taken to be alike. 0: it does not answer.
  int ThreadsOfServer(Backend* backend, Backend::Timeout deadline);

  const std::string address_;
  std::atomic<int> threads_{0};
};

// Solves the shards at the same time. As SplitSolver::Solve: nothing if one of them is refused.
std::optional<tl::expected<Solution, Error>> SolveShards(Backend* backend, const Shards& shards,
                                                         const SolveOptions& options,
                                                         Backend::Timeout deadline);

}  // namespace sap::client
