// Server configuration. Each value has a command-line flag, a default and a valid range (see
// server_config.cc).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "solver/engine/engine_limits.h"

namespace sap {

// Recording of problems and answers for replay.
struct RecordingConfig {
  enum class Rule : uint8_t {
    kAll,
    kFailed,  // no solution, or an island neither converged nor stalled at round-off
    kSlower,  // duration above slower_than_s
  };
  std::string directory;  // empty: recording is off
  Rule rule{Rule::kAll};
  double slower_than_s{0.01};           // threshold of kSlower: time from arrival to answer
  int64_t max_bytes{int64_t{1} << 30};  // file size at which the recording ends
};

// PEM files. Without a certificate the server uses plain text.
struct TlsConfig {
  std::string certificate;
  std::string key;
  std::string client_ca;  // CA of the client certificates; empty: none are requested
};

struct SecurityConfig {
  TlsConfig tls;
  std::string token_file;  // client names and bearer tokens; empty: no token required
  // Clients that may use high priority. kAuto: kListed with a token file, else kAll.
  enum class HighPriorityClients : uint8_t {
    kAuto,
    kAll,
    kListed,  // those with priority=high in the token file
  };
  HighPriorityClients high_priority_clients{HighPriorityClients::kAuto};
  // Allows a non-local main address without TLS or without client authentication. The admin address
  // has no such exception.
  bool insecure_listen{false};
};

// Limits and timeouts of HTTP/2 connections.
struct ConnectionConfig {
  int max_streams{1024};  // concurrent calls on one connection
  int max_header_bytes{16384};
  double handshake_timeout_s{10};
  double keepalive_s{60};          // silence before a keepalive ping is sent
  double keepalive_timeout_s{20};  // wait for the ping acknowledgement, then close
  double idle_s{3600};             // time without a call, then close
  // Then the client is asked to connect again, as DNS and balancers say at that time; 0: never.
  double age_s{0};
  // Watch streams of the health service, which needs no token: in all, and on a connection of TCP.
  int max_watches{1024};
  int max_watches_per_connection{4};
  int64_t max_memory_bytes{int64_t{2} << 30};  // transport buffers of all connections together
};

// Verbosity of the log; each level includes the levels below it.
enum class LogLevel : uint8_t {
  kDebug,    // all calls
  kInfo,     // slow calls and server events
  kWarning,  // failed calls
  kError,    // conditions that need an operator
};

struct LogConfig {
  LogLevel level{LogLevel::kInfo};
  double slow_call_s{1};  // calls of at least this duration count as slow
  std::string file;       // empty: standard error
};

// Operator endpoints; an empty address disables the endpoint.
struct OperationsConfig {
  std::string metrics_listen;    // HOST:PORT; plain HTTP, no authentication
  std::string admin_listen;      // HOST:PORT or unix:PATH
  std::string admin_token_file;  // operator names and bearer tokens
  std::string otlp_collector;    // HOST:PORT or unix:PATH; receives the spans of traced calls
};

// Admission limits on calls that are received, queued or being solved at the same time.
struct AdmissionLimits {
  int max_calls{1024};
  int64_t max_bytes{int64_t{1} << 30};
  double max_work_s{120};  // predicted solve time on one core
  int max_sessions{1024};  // open at the same time
};

// Limits and rights of one client. A line of the token file replaces some of it for its client.
struct Entitlements {
  int max_calls{512};  // as in AdmissionLimits
  int64_t max_bytes{int64_t{1} << 29};
  double max_work_s{60};
  int max_sessions{512};
  double max_solve_s{60};     // then a solve ends as at a time budget
  double max_calls_per_s{0};  // 0: no limit
  bool high_priority{true};   // false: requests for high priority are served as normal
  int64_t max_model_bytes{int64_t{256} << 20};  // models that are held for it
  bool worlds{true};                            // whether it may use WorldService

  bool operator==(const Entitlements&) const = default;
};

// Limits for all clients together, and for each client.
struct AdmissionConfig {
  AdmissionLimits all;
  Entitlements client;
};

struct SessionConfig {
  int max_steps_in_flight{8};  // per session: steps accepted and not yet answered
  double idle_s{600};          // idle timeout: time without a step
  double write_timeout_s{30};  // for the client to receive an answer, then the call is cancelled
};

// Worlds of MuJoCo, which processes of their own step.
struct WorldsConfig {
  std::string mujoco_library;  // path, or "auto"; empty: the server steps none
  std::string program;         // of these processes; empty: sap-worlds next to this program
  std::string library_path;    // their LD_LIBRARY_PATH
  int64_t max_model_memory_mib{1024};
  int64_t max_client_model_memory_mib{256};
  int64_t max_world_memory_mib{2048};  // address space of a process
  double max_model_load_s{10};
  double max_step_s{2};
  bool without_jail{false};
};

struct ServerConfig : EngineLimits {
  // HOST:PORT (port 0: any free port) or unix:PATH. The default is reachable from this machine
  // only.
  std::string listen{"127.0.0.1:50051"};
  SecurityConfig security;
  ConnectionConfig connection;
  int threads{DefaultThreads()};       // arena threads, which solve large problems
  int solver_nice{0};                  // nice value of the arena threads
  int io_threads{DefaultIoThreads()};  // receive calls and solve small problems
  // Upper bound on SCHED_IDLE spinners for low-latency sessions; at most `threads` are started.
  int idle_spinners{DefaultIdleSpinners()};

  int64_t max_message_bytes{int64_t{256} << 20};
  // To receive the request of a call, or the first one of a session; then the call is cancelled.
  double read_timeout_s{30};
  AdmissionConfig admission;  // sessions have a limit of their own
  double queue_timeout_s{5};  // longest wait of a problem in the queue
  SessionConfig session;
  WorldsConfig worlds;

  // Problems with a smaller predicted solve time are solved inline, on the thread that received
  // them. Waking an arena thread would cost about as much; a larger bound would delay the calls
  // behind on the same thread.
  double inline_below_us{200};
  // Limit of resident memory; 0: that of the control group, or the memory of the machine.
  int64_t memory_limit_bytes{0};
  double lame_duck_s{0};       // lame-duck period after SIGTERM: calls are still accepted
  double drain_timeout_s{30};  // then in-flight calls may finish; the rest is cancelled
  LogConfig log;
  OperationsConfig operations;

  RecordingConfig recording;

  // As measured up to 16: each has its own connections, and sleeps when they are idle.
  static int DefaultIoThreads() { return std::min(DefaultThreads(), 16); }
};

// Exit code after an error of the command line, or of a file that it names: the same start would
// fail again. Other starts that fail, as at an address in use, exit with 1.
constexpr int kUsageError = 2;

// Reads the flags of the command line, of the environment ("SAP_THREADS=3", ..., null) and of the
// file of --config into *config. Returns nothing on success. After --help, --version or an error
// (already printed) it returns the exit code of the process: 0 or kUsageError.
std::optional<int> ReadServerFlags(int argc, const char* const* argv,
                                   const char* const* environment, ServerConfig* config);

}  // namespace sap
