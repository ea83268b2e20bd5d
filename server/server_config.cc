#include "server/server_config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <thread>

#include "server/listen_address.h"

namespace sap {
namespace {

constexpr int kMostThreads = 256;  // as solver/parallel/task_arena.cc allows the process
// Trees times dofs of each is an int in the solver.
constexpr int kMostTrees = 1 << 20;
constexpr int kMostTreeDofs = 2000;
// A protobuf message cannot be larger than this, whatever the transport allows.
constexpr int64_t kLargestMessage_bytes = std::numeric_limits<int32_t>::max();

int NumProcessors() { return std::max(1u, std::thread::hardware_concurrency()); }

void AddRecordingFlags(CLI::App* app, RecordingConfig* recording) {
  using Rule = RecordingConfig::Rule;
  const std::map<std::string, Rule> rules{
      {"all", Rule::kAll}, {"failed", Rule::kFailed}, {"slower", Rule::kSlower}};
  CLI::Option* directory =
      app->add_option("--record", recording->directory,
                      "Directory to record problems and answers to; see sap-client replay");
  app->add_option("--record-rule", recording->rule, "What to record: all, failed or slower")
      ->transform(CLI::CheckedTransformer(rules))
      ->needs(directory);
  app->add_option("--record-slower-than", recording->slower_than_s,
                  "Seconds above which the rule 'slower' records")
      ->check(CLI::Range(0.0, 86'400.0))
      ->needs(directory);
  app->add_option("--record-max-bytes", recording->max_bytes, "Size at which the recording ends")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()))
      ->needs(directory);
}

void AddSecurityFlags(CLI::App* app, SecurityConfig* security) {
  CLI::Option* certificate = app->add_option("--tls-cert", security->tls.certificate,
                                             "Certificate (PEM); read again when it changes");
  CLI::Option* key =
      app->add_option("--tls-key", security->tls.key, "Its private key (PEM)")->needs(certificate);
  certificate->needs(key);
  app->add_option("--tls-client-ca", security->tls.client_ca,
                  "Authority (PEM) whose certificate every client needs")
      ->needs(certificate);
  app->add_option("--token-file", security->token_file,
                  "File with a client's name and bearer token on each line; every call needs one");
  app->add_flag("--insecure-listen", security->insecure_listen,
                "Listen beyond this machine even without TLS, or without tokens or client CA");
}

void AddConnectionFlags(CLI::App* app, ConnectionConfig* connection) {
  app->add_option("--max-streams-per-connection", connection->max_streams,
                  "Most calls at once on a connection; more wait at the client")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-header-bytes", connection->max_header_bytes, "Largest headers of a call")
      ->check(CLI::Range(1024, 1 << 20));
  app->add_option("--handshake-timeout-s", connection->handshake_timeout_s,
                  "Time for a new connection to be made")
      ->check(CLI::Range(0.1, 600.0));
  app->add_option("--keepalive-s", connection->keepalive_s,
                  "Silence of a peer before it is asked for a sign of life")
      ->check(CLI::Range(1.0, 86'400.0));
  app->add_option("--keepalive-timeout-s", connection->keepalive_timeout_s,
                  "Time for that sign, then the connection is dropped")
      ->check(CLI::Range(0.1, 86'400.0));
  app->add_option("--connection-idle-s", connection->idle_s,
                  "Time without a call after which a connection is closed")
      ->check(CLI::Range(1.0, 1e6));
  app->add_option("--max-connection-memory-bytes", connection->max_memory_bytes,
                  "Most memory in the buffers of all connections")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40));
}

void AddAdmissionFlags(CLI::App* app, ServerConfig* config) {
  const auto add = [app](AdmissionLimits* limits, const std::string& who, const std::string& what) {
    app->add_option("--max-" + who + "-calls", limits->max_calls,
                    "Most calls served at once " + what + "; beyond it RESOURCE_EXHAUSTED")
        ->check(CLI::Range(1, 1'000'000));
    app->add_option("--max-" + who + "-bytes", limits->max_bytes,
                    "Most bytes of requests held at once " + what)
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
    app->add_option("--max-" + who + "-work-s", limits->max_work_s,
                    "Most predicted seconds of work held at once " + what)
        ->check(CLI::Range(0.0, 1e9));
  };
  add(&config->admission.all, "concurrent", "for all clients");
  add(&config->admission.client, "client", "for one client");
  app->add_option("--queue-timeout-s", config->queue_timeout_s,
                  "Longest time that a problem waits for a thread")
      ->check(CLI::Range(0.0, 86'400.0));
}

void AddSessionFlags(CLI::App* app, SessionConfig* session) {
  app->add_option("--max-sessions", session->max_sessions,
                  "Most sessions open at once; beyond it RESOURCE_EXHAUSTED")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-steps-in-flight", session->max_steps_in_flight,
                  "Most steps of a session taken in and not yet answered")
      ->check(CLI::Range(1, 1024));
  app->add_option("--session-idle-s", session->idle_s,
                  "Time without a step after which a session ends with ABORTED")
      ->check(CLI::Range(0.1, 1e9));
  app->add_option("--write-timeout-s", session->write_timeout_s,
                  "Time for a client to take an answer; then its session is cut off")
      ->check(CLI::Range(0.1, 86'400.0));
  app->add_option("--session-resume-s", session->resume_s,
                  "Time for which a session whose connection was lost can be resumed")
      ->check(CLI::Range(0.0, 86'400.0));
}

void AddOperationsFlags(CLI::App* app, ServerConfig* config) {
  const std::map<std::string, LogLevel> levels{{"debug", LogLevel::kDebug},
                                               {"info", LogLevel::kInfo},
                                               {"warning", LogLevel::kWarning},
                                               {"error", LogLevel::kError}};
  const CLI::Validator address(CheckAddress, "ADDR");
  app->add_option("--log-level", config->log.level, "debug, info, warning or error")
      ->transform(CLI::CheckedTransformer(levels));
  app->add_option("--log-file", config->log.file, "File for log lines instead of standard error");
  app->add_option("--slow-call-s", config->log.slow_call_s, "Duration from which calls are logged")
      ->check(CLI::Range(0.0, 86'400.0));
  OperationsConfig* operations = &config->operations;
  app->add_option("--metrics-listen", operations->metrics_listen,
                  "HOST:PORT of the metrics for Prometheus")
      ->check(address);
  CLI::Option* admin = app->add_option("--admin-listen", operations->admin_listen,
                                       "HOST:PORT or unix:PATH of the calls for operators")
                           ->check(address);
  app->add_option("--admin-token-file", operations->admin_token_file,
                  "File with an operator's name and bearer token on each line")
      ->needs(admin);
}

void AddFlags(CLI::App* app, ServerConfig* config) {
  app->add_option("--listen", config->listen,
                  "Address to serve: HOST:PORT (port 0: any free one) or unix:PATH")
      ->check(CLI::Validator(CheckAddress, "ADDR"));
  app->add_option("--threads", config->threads, "Threads that solve large problems")
      ->check(CLI::Range(1, kMostThreads));
  app->add_option("--solver-nice", config->solver_nice,
                  "How far these stand back, as nice(1), for threads that receive calls and for "
                  "high priority; 10 where nothing else needs the processors")
      ->check(CLI::Range(0, 19));
  app->add_option("--io-threads", config->io_threads,
                  "Most threads to receive calls and solve small problems; one if it keeps up")
      ->check(CLI::Range(1, kMostThreads));
  app->add_option("--idle-spinners", config->idle_spinners,
                  "Most processors to keep awake while sessions that asked for low latency are "
                  "stepped, at idle priority; 0 where processor time or power is short")
      ->check(CLI::Range(0, kMostThreads));
  app->add_option("--max-message-bytes", config->max_message_bytes, "Largest request")
      ->check(CLI::Range(int64_t{1}, kLargestMessage_bytes));
  app->add_option("--max-trees", config->problem.max_trees, "Most trees and bodies in a problem")
      ->check(CLI::Range(1, kMostTrees));
  app->add_option("--max-tree-dofs", config->problem.max_tree_dofs,
                  "Most degrees of freedom of one tree")
      ->check(CLI::Range(1, kMostTreeDofs));
  app->add_option("--max-contacts", config->problem.max_contacts, "Most contacts in a problem")
      ->check(CLI::Range(1, 1 << 26));
  app->add_option("--max-iterations", config->max_iterations,
                  "Largest iteration limit a client may ask for")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-solve-memory-mib", config->max_solve_memory_mib,
                  "Most memory for the factorization of a problem; beyond it RESOURCE_EXHAUSTED")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  app->add_option("--max-batch-problems", config->max_batch_problems, "Most problems in a batch")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--inline-below-us", config->inline_below_us,
                  "Solve problems predicted to take less on the thread that received them")
      ->check(CLI::Range(0.0, 1e6));
  app->add_option("--lame-duck-s", config->lame_duck_s,
                  "Time after SIGTERM or SIGINT in which calls are still taken, while health says "
                  "NOT_SERVING and sessions are told")
      ->check(CLI::Range(0.0, 86'400.0));
  app->add_option("--drain-timeout-s", config->drain_timeout_s,
                  "Time for running calls to finish after that")
      ->check(CLI::Range(0.0, 86'400.0));
  AddSessionFlags(app, &config->session);
  AddOperationsFlags(app, config);
  AddSecurityFlags(app, &config->security);
  AddConnectionFlags(app, &config->connection);
  AddAdmissionFlags(app, config);
  AddRecordingFlags(app, &config->recording);
  app->set_version_flag("--version", SAP_VERSION);
}

// Why the server must not listen there like that; empty if it may.
std::string CheckExposure(const std::string& address, const SecurityConfig& security,
                          const std::string& token_file, const std::string& token_flag) {
  if (security.insecure_listen || IsLocal(address)) return "";
  const std::string beyond = address + " can be reached from beyond this machine: ";
  if (security.tls.certificate.empty()) {
    return beyond + "give --tls-cert and --tls-key, or --insecure-listen";
  }
  if (security.tls.client_ca.empty() && token_file.empty()) {
    return beyond + "give " + token_flag + " or --tls-client-ca, or --insecure-listen";
  }
  return "";
}

std::string CheckExposure(const ServerConfig& config) {
  std::string error =
      CheckExposure(config.listen, config.security, config.security.token_file, "--token-file");
  const OperationsConfig& operations = config.operations;
  if (error.empty() && !operations.admin_listen.empty()) {
    error = CheckExposure(operations.admin_listen, config.security, operations.admin_token_file,
                          "--admin-token-file");
  }
  return error;
}

}  // namespace

int ServerConfig::DefaultThreads() { return NumProcessors(); }

// More would only compete with the threads that solve.
int ServerConfig::DefaultIoThreads() { return std::min(NumProcessors(), 8); }

std::optional<int> ReadServerFlags(int argc, const char* const* argv, ServerConfig* config) {
  CLI::App app("Solves frictional contact problems sent over gRPC.", "sap-server");
  app.option_defaults()->always_capture_default();
  AddFlags(&app, config);
  try {
    app.parse(argc, argv);
    if (const std::string error = CheckExposure(*config); !error.empty()) {
      return app.exit(CLI::ValidationError("listening", error));
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace sap
