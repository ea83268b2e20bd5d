#include "client/cpp/split/split_solver.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>
#include <vector>

#include "client/cpp/split/merge.h"
#include "client/cpp/split/server_count.h"
#include "client/cpp/transport/remote_backend.h"
#include "client/cpp/transport/server_identity.h"
#include "solver/run/island_forecast.h"
#include "solver/split/assignment.h"
#include "solver/split/split_gain.h"

namespace sap::client {
namespace {

// Most calls in the background that are split at the same time: each waits for its shards.
constexpr int kMostBackgroundThreads = 16;

// Least bytes of a part of a scene on one server: the calls of smaller ones cost more than they
// save.
constexpr size_t kLeastPart_bytes = 1 << 20;

// Size of the arrays that a request carries; those of a few bytes per contact are left out.
size_t BytesOf(const ContactProblemView& view) {
  return sizeof(double) *
         (view.trees.dynamics_matrix.size() + 2 * view.trees.free_motion_velocity.size() +
          4 * view.bodies.free_motion_velocity.size() + view.contacts.jacobian.size() +
          12 * (static_cast<size_t>(CountContacts(view.contacts)) +
                view.body_contacts.body_a.size()) +
          2 * view.rows.velocity_index.size() + 6 * view.rows.entries.size());
}

SolveOutcome SolveAt(Backend* backend, const ContactProblemView& problem,
                     const SolveOptions& options, Timeout deadline, BuildPin* pin) {
  return Await<SolveOutcome>([&](Where where, Done<SolveOutcome> done) {
    backend->Solve(problem, options, deadline, where, pin, std::move(done));
  });
}

}  // namespace

void SplitSolver::Solve(Backend* backend, const ContactProblemView& problem,
                        const SolveOptions& options, int servers, Timeout deadline, Where where,
                        BuildPin* pin, Done<SolveOutcome> done) {
  const auto start = std::chrono::steady_clock::now();
  const auto solve = [=, this] {
    auto split = TrySplit(backend, problem, options, servers, deadline, pin);
    if (split) return *std::move(split);
    if (!deadline) return SolveAt(backend, problem, options, deadline, pin);
    const auto left = *deadline - (std::chrono::steady_clock::now() - start);
    if (left.count() > 0) return SolveAt(backend, problem, options, left, pin);
    return SolveOutcome(tl::unexpected(
        Error{ErrorCode::kDeadlineExceeded, "the deadline of the call has passed", ""}));
  };
  if (where == Where::kHere) return done(solve());
  const std::lock_guard lock(mutex_);
  if (background_ == nullptr) {
    background_ = std::make_unique<ForkedThreads>(kMostBackgroundThreads);
  }
  background_->Enqueue([solve, done = std::move(done)] { done(solve()); });
}

std::optional<SolveOutcome> SplitSolver::TrySplit(Backend* backend,
                                                  const ContactProblemView& problem,
                                                  const SolveOptions& options, int servers,
                                                  Timeout deadline, BuildPin* pin) {
  const auto start = std::chrono::steady_clock::now();
  if (!options.solver.islands) return std::nullopt;
  const int num_servers = NumServers(servers);
  const size_t bytes = BytesOf(problem);
  const int connections = num_servers > 1 ? 1 : NumConnections(bytes);
  if (num_servers < 2 && connections < 2) return std::nullopt;
  const int threads = ThreadsOfServer(backend, options.call, deadline);
  if (threads == 0) return std::nullopt;
  // Their memory serves the next problem of this thread.
  thread_local ProblemLayout layout;
  thread_local IslandForecast forecast;
  if (!layout.Read(problem)) return std::nullopt;
  ForecastIslands(layout, &forecast);
  std::vector<Backend*> backends{backend};
  std::vector<std::vector<int>> dealt;
  if (num_servers > 1) {
    dealt = AssignLargestFirst(forecast.solve_time_s, num_servers);
    if (!PaysOff(forecast.solve_time_s, dealt, threads, bytes)) return std::nullopt;
  } else {
    backends = Connections(backend, std::min(connections, threads));
    dealt = DealInOrder(forecast.solve_time_s, static_cast<int>(backends.size()));
    if (dealt.size() < 2) return std::nullopt;
  }
  const Shards shards(problem, layout, forecast.island_of_tree, dealt);
  if (deadline) *deadline -= std::chrono::steady_clock::now() - start;
  auto outcome = SolveShards(backends, shards, options, deadline, pin);
  const bool has_no_room =
      outcome && !*outcome && outcome->error().code == ErrorCode::kResourceExhausted;
  if (num_servers < 2 && has_no_room) return std::nullopt;
  return outcome;
}

bool SplitSolver::Divides(const ContactProblemView& problem) const {
  return NumConnections(BytesOf(problem)) > 1;
}

int SplitSolver::NumServers(int servers) const {
  if (address_ == "embedded:") return 1;
  return servers == kServersOfAddress ? CountServers(address_) : servers;
}

int SplitSolver::NumConnections(size_t problem_bytes) const {
  if (address_ == "embedded:" || CountServers(address_) > 1) return 1;
  const auto worth = static_cast<int64_t>(problem_bytes / kLeastPart_bytes);
  return static_cast<int>(std::min<int64_t>(options_.scene_connections, worth));
}

std::vector<Backend*> SplitSolver::Connections(Backend* first, int count) {
  std::vector<Backend*> backends{first};
  const std::lock_guard lock(mutex_);
  for (int i = 0; i + 1 < count; ++i) {
    if (i == static_cast<int>(further_.size())) {
      auto made = RemoteBackend(address_, options_);
      if (!made) break;
      further_.push_back(std::move(*made));
    }
    backends.push_back(further_[i].get());
  }
  return backends;
}

int SplitSolver::ThreadsOfServer(Backend* backend, const CallOptions& call, Timeout deadline) {
  if (const int threads = threads_.load(); threads != 0) return threads;
  const auto info = InfoOf(backend, call, deadline);
  if (!info) return 0;
  const int threads = std::max(1, static_cast<int>(info->solver_threads));
  threads_.store(threads);
  return threads;
}

std::vector<std::vector<int>> DealInOrder(std::span<const double> times_s, int parts) {
  const double all_s = std::accumulate(times_s.begin(), times_s.end(), 0.0);
  std::vector<std::vector<int>> dealt(parts);
  double before_s = 0;
  for (size_t island = 0; island < times_s.size(); ++island) {
    const double middle = (before_s + times_s[island] / 2) / all_s;
    const int part = std::min(static_cast<int>(middle * parts), parts - 1);
    dealt[part].push_back(static_cast<int>(island));
    before_s += times_s[island];
  }
  std::erase_if(dealt, [](const std::vector<int>& islands) { return islands.empty(); });
  return dealt;
}

std::optional<SolveOutcome> SolveShards(std::span<Backend* const> backends, const Shards& shards,
                                        const SolveOptions& options, Timeout deadline,
                                        BuildPin* pin) {
  SolveOptions of_shards = options;
  of_shards.response_mask = MaskOfShards(options.response_mask);
  BuildPin own_pin;
  if (pin == nullptr) pin = &own_pin;
  const auto solve = [&](int shard) -> SolveOutcome {
    const Problem problem = shards.Extract(shard);
    Backend* const backend = backends[static_cast<size_t>(shard) % backends.size()];
    return SolveAt(backend, ViewOf(problem), of_shards, deadline, pin);
  };
  std::vector<std::future<SolveOutcome>> others;
  for (int shard = 1; shard < shards.count(); ++shard) {
    // Without std::launch::async, a shard for which no thread can be started is solved by this one,
    // in get(); with it there would be an exception.
    others.push_back(std::async(solve, shard));
  }
  std::vector<SolveOutcome> outcomes{solve(0)};
  for (std::future<SolveOutcome>& other : others) outcomes.push_back(other.get());
  std::vector<Solution> solutions;
  std::optional<SolveOutcome> failure;
  for (SolveOutcome& outcome : outcomes) {
    if (outcome) {
      solutions.push_back(std::move(*outcome));
    } else if (outcome.error().code == ErrorCode::kInvalidArgument ||
               IsOtherBuild(outcome.error())) {
      return std::nullopt;
    } else if (!failure) {
      failure = std::move(outcome);
    }
  }
  if (failure) return failure;
  return Merge(shards, solutions, options.response_mask);
}

}  // namespace sap::client
