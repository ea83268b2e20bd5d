// Everything an operator may choose about a server: addresses, threads and every limit, each with a
// flag, a default and a range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "solver/problem/contact_problem.h"

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

// Files in PEM. Without a certificate nothing is encrypted.
struct TlsConfig {
  std::string certificate;
  std::string key;
  std::string client_ca;  // by which clients' certificates are checked; empty: none are asked for
};

struct SecurityConfig {
  TlsConfig tls;
  std::string token_file;  // clients and their bearer tokens; empty: no token is needed
  // Whether to listen beyond this machine although nobody has to prove who they are, or what they
  // send can be read on the way.
  bool insecure_listen{false};
};

// What one connection may take, and how long it may keep still.
struct ConnectionConfig {
  int max_streams{1024};  // calls on one connection
  int max_header_bytes{8192};
  double handshake_timeout_s{10};
  double keepalive_s{60};  // without a sign of life, until the peer is asked for one
  double keepalive_timeout_s{20};
  double idle_s{3600};                         // without a call, until the connection is closed
  int64_t max_memory_bytes{int64_t{2} << 30};  // in transport buffers of all connections
};

// Of what an operator reads.
enum class LogLevel : uint8_t {
  kDebug,    // every call
  kInfo,     // slow and failed calls, and what the server does
  kWarning,  // failed calls
  kError,    // what an operator must mend
};

struct LogConfig {
  LogLevel level{LogLevel::kInfo};
  double slow_call_s{1};  // calls of at least this duration are slow
  std::string file;       // empty: standard error
};

// Addresses for operators; empty: not served.
struct OperationsConfig {
  std::string metrics_listen;    // HOST:PORT
  std::string admin_listen;      // HOST:PORT or unix:PATH
  std::string admin_token_file;  // operators and their bearer tokens
};

// Bounds on what is held at once, by the calls that are received, queued or solved.
struct AdmissionLimits {
  int max_calls{1024};
  int64_t max_bytes{int64_t{1} << 30};
  double max_work_s{120};  // predicted, on one core
};

struct AdmissionConfig {
  AdmissionLimits all;
  AdmissionLimits client{.max_calls = 512, .max_bytes = int64_t{1} << 29, .max_work_s = 60};
};

struct SessionConfig {
  int max_sessions{1024};      // open at once
  int max_steps_in_flight{8};  // of a session, taken in and not yet answered
  double idle_s{600};          // without a step, until a session is ended
  double write_timeout_s{30};  // for a client to take an answer, until it is cut off
  double resume_s{30};         // for which a lost session is kept
};

struct ServerConfig {
  // HOST:PORT (port 0: any free one) or unix:PATH. Loopback unless chosen otherwise.
  std::string listen{"127.0.0.1:50051"};
  SecurityConfig security;
  ConnectionConfig connection;
  int threads{DefaultThreads()};       // that solve large problems
  int solver_nice{0};                  // of those threads, as nice(1) means it
  int io_threads{DefaultIoThreads()};  // that receive calls, and solve small problems
  // Processors kept awake for sessions of low latency; not more than there are `threads`.
  int idle_spinners{DefaultThreads()};

  int64_t max_message_bytes{int64_t{256} << 20};
  ProblemLimits problem;
  int max_iterations{10'000};  // that a client may ask for
  // For the factorization of one problem, on all threads together. A pile of 30,000 bodies needs
  // 3500 MiB.
  int64_t max_solve_memory_mib{4096};
  AdmissionConfig admission;  // calls being received, queued or solved; sessions count apart
  double queue_timeout_s{5};  // longest wait for a thread
  int max_batch_problems{4096};
  SessionConfig session;

  // Problems predicted to take less are solved by the thread that received them: waking another one
  // would cost as much, and more could hold up the calls behind them.
  double inline_below_us{200};
  double lame_duck_s{0};       // after SIGTERM, in which calls are still taken
  double drain_timeout_s{30};  // for running calls after that, then they are cancelled
  LogConfig log;
  OperationsConfig operations;

  RecordingConfig recording;

  static int DefaultThreads();
  static int DefaultIoThreads();
};

// Reads the command line of the server into *config. Returns nothing to go on, or the exit code to
// leave with, after --help, --version or an error has been printed.
std::optional<int> ReadServerFlags(int argc, const char* const* argv, ServerConfig* config);

}  // namespace sap
