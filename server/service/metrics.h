// Counters and histograms of the server.
//
// An update is a relaxed atomic addition to a shard chosen by thread, so updates do not contend
// with each other or with reads; a read sums the shards. ops/metrics_endpoint exports the values
// and defines the exported names.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "solver/problem/contact_solution.h"

namespace sap {

constexpr int kMetricShards = 8;

// The shard index of the calling thread.
int MetricShard();

class Counter {
 public:
  void Add(uint64_t count = 1) {
    shards_[MetricShard()].count.fetch_add(count, std::memory_order_relaxed);
  }
  uint64_t Sum() const;

 private:
  struct alignas(64) Shard {
    std::atomic<uint64_t> count{0};
  };
  std::array<Shard, kMetricShards> shards_;
};

// Cumulative histogram: number of values up to each bound, total number, and sum.
class Histogram {
 public:
  static constexpr int kMaxBounds = 20;

  // At most kMaxBounds bounds, ascending; they must outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}

  void Add(double value);

  std::span<const double> bounds() const { return bounds_; }
  struct Counts {
    std::array<uint64_t, kMaxBounds> at_most{};
    uint64_t all{0};
    double sum{0};
  };
  Counts Read() const;

 private:
  struct alignas(64) Shard {
    std::array<std::atomic<uint64_t>, kMaxBounds + 1> counts{};
    std::atomic<double> sum{0};
  };
  const std::span<const double> bounds_;
  std::array<Shard, kMetricShards> shards_;
};

// Methods of the services, in the order of the schema.
enum class Method : uint8_t {
  kSolve,
  kSolveBatch,
  kStreamBatch,
  kSolveSession,
  kDifferentiate,
  kDifferentiateBatch,
  kGetServerInfo,
  // Methods of WorldService:
  kPutModel,
  kAdvance,
};
constexpr int kNumSolverMethods = 7;
constexpr int kNumMethods = 9;
const char* Name(Method method);
// Full name of the service that has the method.
const char* ServiceOf(Method method);

// Phases between the arrival of a problem and its answer.
enum class Phase : uint8_t { kQueue, kDecode, kSolve, kEncode };
constexpr int kNumPhases = 4;
const char* Name(Phase phase);

constexpr int kNumSolveStatuses = static_cast<int>(SolveStatus::kCoulombLimit) + 1;
const char* NameForMetrics(SolveStatus status);

// gRPC status codes are numbered from 0 to 16.
constexpr int kNumCodes = 17;
const char* NameOfCode(int code);

// Thread-safe.
class Metrics {
 public:
  Metrics();

  void CallStarted(Method method) { started[static_cast<int>(method)].Add(); }
  void CallEnded(Method method, int code, double duration_s);

  // Counts an answered problem: the times of its phases and its solution (null: it failed).
  void ProblemEnded(const std::array<double, kNumPhases>& phases_s,
                    const ContactSolution* solution);

  // Counts steps of worlds that were taken in a slice.
  void WorldsStepped(int64_t steps, double took_s) {
    world_slices.Add();
    world_steps.Add(static_cast<uint64_t>(steps));
    world_time_us.Add(static_cast<uint64_t>(took_s * 1e6));
  }

  // Counts a rejection by the named limit.
  void Refused(const std::string& limit);
  std::map<std::string, uint64_t> refusals() const;

  std::array<Counter, kNumMethods> started;
  std::array<std::array<Counter, kNumCodes>, kNumMethods> handled;
  std::deque<Histogram> durations;  // of calls, by method
  std::deque<Histogram> phases;     // of problems
  Histogram refusal_times;          // of calls rejected by a limit
  Histogram islands;                // per problem
  Histogram iterations;             // per problem, maximum over its islands
  Counter islands_solved;
  Counter islands_shared;  // solved in another problem of the batch, and copied
  std::array<Counter, kNumSolveStatuses> island_outcomes;
  Counter problems_solved;
  Counter problems_failed;
  Counter session_steps;
  Counter sessions_expired;
  Counter world_slices;
  Counter world_steps;
  Counter world_time_us;              // of workers in slices
  Counter watches_refused;            // Watch streams of the health service, evicted ones included
  std::atomic<int> watches{0};        // open
  std::atomic<int> reads_waiting{0};  // requests that are not yet read
  std::atomic<int> reads_slow{0};     // requests that are read for longer than a second

 private:
  mutable std::mutex mutex_;
  // By limit. The one that an alert names is there from the start: the rate of a series misses the
  // increment with which it begins.
  std::map<std::string, uint64_t> refusals_{{"SLOW_REQUEST", 0}};
};

}  // namespace sap
