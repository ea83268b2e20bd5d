#include "server/service/metrics.h"

#include <algorithm>
#include <iterator>

namespace sap {
namespace {

constexpr std::array<double, 19> kTimeBounds_s{10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3,
                                               2e-3,  5e-3,  10e-3, 20e-3,  50e-3,  0.1,    0.2,
                                               0.5,   1,     2,     5,      10};
constexpr int kResourceExhausted = 8;
constexpr std::array<double, 12> kCountBounds{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10'000};

}  // namespace

int MetricShard() {
  static std::atomic<int> next{0};
  thread_local const int shard = next.fetch_add(1, std::memory_order_relaxed) % kMetricShards;
  return shard;
}

uint64_t Counter::Sum() const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.count.load(std::memory_order_relaxed);
  return sum;
}

void Histogram::Add(double value) {
  Shard& shard = shards_[MetricShard()];
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  shard.counts[bucket].fetch_add(1, std::memory_order_relaxed);
  shard.sum.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Counts Histogram::Read() const {
  Counts counts;
  for (const Shard& shard : shards_) {
    uint64_t at_most = 0;
    for (size_t i = 0; i <= bounds_.size(); ++i) {
      at_most += shard.counts[i].load(std::memory_order_relaxed);
      if (i < bounds_.size()) counts.at_most[i] += at_most;
    }
    counts.all += at_most;
    counts.sum += shard.sum.load(std::memory_order_relaxed);
  }
  return counts;
}

const char* Name(Method method) {
  constexpr const char* kNames[] = {"Solve",         "SolveBatch",    "StreamBatch",
                                    "SolveSession",  "Differentiate", "DifferentiateBatch",
                                    "GetServerInfo", "PutModel",      "Advance"};
  return kNames[static_cast<int>(method)];
}

const char* ServiceOf(Method method) {
  return static_cast<int>(method) < kNumSolverMethods ? "sap.v1.SolverService"
                                                      : "sap.v1.WorldService";
}

const char* Name(Phase phase) {
  constexpr const char* kNames[] = {"queue", "decode", "solve", "encode"};
  return kNames[static_cast<int>(phase)];
}

const char* NameForMetrics(SolveStatus status) {
  constexpr const char* kNames[] = {"converged",    "stalled_at_roundoff", "iteration_limit",
                                    "deadline",     "cancelled",           "numerical_failure",
                                    "coulomb_limit"};
  static_assert(std::size(kNames) == kNumSolveStatuses);
  return kNames[static_cast<int>(status)];
}

const char* NameOfCode(int code) {
  constexpr const char* kNames[] = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  return kNames[code >= 0 && code < kNumCodes ? code : 2];
}

Metrics::Metrics() : refusal_times(kTimeBounds_s), islands(kCountBounds), iterations(kCountBounds) {
  static_assert(kTimeBounds_s.size() <= Histogram::kMaxBounds);
  static_assert(kCountBounds.size() <= Histogram::kMaxBounds);
  for (int i = 0; i < kNumMethods; ++i) durations.emplace_back(kTimeBounds_s);
  for (int i = 0; i < kNumPhases; ++i) phases.emplace_back(kTimeBounds_s);
}

void Metrics::CallEnded(Method method, int code, double duration_s) {
  const int known = code >= 0 && code < kNumCodes ? code : 2;
  handled[static_cast<int>(method)][known].Add();
  durations[static_cast<int>(method)].Add(duration_s);
  if (code == kResourceExhausted) refusal_times.Add(duration_s);
}

void Metrics::ProblemEnded(const std::array<double, kNumPhases>& phases_s,
                           const ContactSolution* solution) {
  if (solution == nullptr) return problems_failed.Add();
  problems_solved.Add();
  for (int i = 0; i < kNumPhases; ++i) phases[i].Add(phases_s[i]);
  islands.Add(static_cast<double>(solution->islands.size()));
  islands_solved.Add(solution->islands.size() - solution->shared_islands);
  if (solution->shared_islands > 0) islands_shared.Add(solution->shared_islands);
  int most_iterations = 0;
  std::array<uint64_t, kNumSolveStatuses> outcomes{};
  for (const IslandReport& island : solution->islands) {
    most_iterations = std::max(most_iterations, island.iterations);
    ++outcomes[static_cast<int>(island.status)];
  }
  iterations.Add(most_iterations);
  for (int i = 0; i < kNumSolveStatuses; ++i) {
    if (outcomes[i] > 0) island_outcomes[i].Add(outcomes[i]);
  }
}

void Metrics::Refused(const std::string& limit) {
  const std::lock_guard lock(mutex_);
  ++refusals_[limit];
}

std::map<std::string, uint64_t> Metrics::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

}  // namespace sap
