// A load on a server: problems sent in a closed loop, each as soon as the last is answered, or at a
// rate, whether the server keeps up or not.
//
// At a rate, the time of a call counts from when it was due: a server that stalls is charged for
// the calls that could not be sent meanwhile (no coordinated omission).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "client/cpp/bench/latencies.h"
#include "client/cpp/transport/transport.h"

namespace sap::client {

enum class LoadMode : uint8_t { kUnary, kSession, kBatch };

struct Load {
  LoadMode mode{LoadMode::kSession};
  std::vector<v1::ContactProblem> problems;  // in turn
  v1::SolveOptions options;
  bool low_latency{false};  // of sessions
  int batch_size{64};
  int workers{1};  // each with a connection, and a session, of its own
  double rate{0};  // calls per second of all workers; 0: closed loop
  // When each problem is due [s], ascending from 0, again and again; empty: not said.
  std::vector<double> due_s;
  double warmup_s{0};
  double duration_s{10};
  bool obey_retry_delay{true};  // wait as long as a refusal says, in a closed loop
};

// What came of it. A call is a problem, a step or a batch.
struct LoadResult {
  Latencies answered;
  Latencies refused;                       // with RESOURCE_EXHAUSTED
  std::map<std::string, uint64_t> failed;  // by code, refused ones included
  uint64_t unsent{0};                      // due while all workers waited for answers
  double elapsed_s{0};
  // Mean phases of the server, of answered problems [s].
  double queue_s{0};
  double decode_s{0};
  double solve_s{0};
  double encode_s{0};
};

using Connector = std::function<tl::expected<std::unique_ptr<Transport>, Error>()>;

// An error if no connection could be made.
tl::expected<LoadResult, Error> RunLoad(const Load& load, const Connector& connect);

}  // namespace sap::client
