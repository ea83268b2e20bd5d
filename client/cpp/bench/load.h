// Load generator: sends problems in a closed loop, each when the previous one is answered, or at a
// fixed rate, whether or not the server keeps up.
//
// At a fixed rate, the latency of a call is measured from its due time, so that calls delayed by a
// stalled server count as slow (no coordinated omission).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/bench/latencies.h"
#include "client/cpp/client.h"

namespace sap::client {

enum class LoadMode : uint8_t { kUnary, kSession, kBatch };

struct Load {
  LoadMode mode{LoadMode::kSession};
  std::vector<Problem> problems;  // in turn
  SolveOptions options;
  int batch_size{64};
  int workers{1};      // each with one call at a time, and its own session
  int connections{0};  // that the workers share; 0: each has its own
  double rate{0};      // calls per second of all workers; 0: closed loop
  // Due time of each problem [s], ascending from 0; repeated until the end. Empty: not used.
  std::vector<double> due_s;
  double warmup_s{0};
  double duration_s{10};
  bool obey_retry_delay{true};  // in a closed loop, wait as long as a rejection says
  // Set by another thread or a signal handler, it ends the load early. May be null.
  const std::atomic<bool>* cancelled{nullptr};
};

// Result of a load. A call is a problem, a step or a batch.
struct LoadResult {
  Latencies answered;
  Latencies refused;                       // with RESOURCE_EXHAUSTED
  std::map<std::string, uint64_t> failed;  // by code, including refused ones
  uint64_t unsent{0};                      // still not sent at the end: all workers were waiting
  double elapsed_s{0};                     // of the measurement; less than asked for: cancelled
  // Mean time of each phase on the server, over answered calls [s].
  double queue_s{0};
  double decode_s{0};
  double solve_s{0};
  double encode_s{0};
};

using Connector = std::function<tl::expected<Client, Error>()>;

// An error if a connection cannot be made.
tl::expected<LoadResult, Error> RunLoad(const Load& load, const Connector& connect);

}  // namespace sap::client
