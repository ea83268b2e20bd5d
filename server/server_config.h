// Everything an operator may choose about a server: addresses, threads and every limit, each with a
// flag, a default and a range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "solver/contact_problem.h"

namespace sap {

// What to record, and how much of it.
struct RecordingConfig {
  enum class Rule : uint8_t {
    kAll,
    kFailed,  // no solution, or an island that neither converged nor stalled at round-off
    kSlower,  // than slower_than_s
  };
  std::string directory;  // empty: nothing is recorded
  Rule rule{Rule::kAll};
  double slower_than_s{0.01};  // from the arrival of a problem to its answer
  int64_t max_bytes{int64_t{1} << 30};
};

struct ServerConfig {
  // HOST:PORT (port 0: any free one) or unix:PATH. Loopback unless chosen otherwise.
  std::string listen{"127.0.0.1:50051"};
  int threads{DefaultThreads()};       // that solve large problems
  int io_threads{DefaultIoThreads()};  // that receive calls, and solve small problems

  int64_t max_message_bytes{int64_t{256} << 20};
  ProblemLimits problem;
  int max_iterations{10'000};      // that a client may ask for
  int max_concurrent_calls{1024};  // being received, queued or solved; sessions count apart
  int max_batch_problems{4096};
  int max_sessions{1024};      // open at once
  int max_steps_in_flight{8};  // of a session, taken in and not yet answered

  // Problems predicted to take less are solved by the thread that received them: waking another one
  // would cost as much, and more could hold up the calls behind them.
  double inline_below_us{200};
  double drain_timeout_s{30};  // for running calls after SIGTERM, then they are cancelled

  RecordingConfig recording;

  static int DefaultThreads();
  static int DefaultIoThreads();
};

// Reads the command line of the server into *config. Returns nothing to go on, or the exit code to
// leave with, after --help, --version or an error has been printed.
std::optional<int> ReadServerFlags(int argc, const char* const* argv, ServerConfig* config);

}  // namespace sap
