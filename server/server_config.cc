#include "server/server_config.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/flags/flag_checks.h"
#include "proto/flags/flag_sources.h"
#include "proto/flags/usage_error.h"
#include "server/listen_address.h"
#include "server/server_identity.h"

namespace sap {
namespace {

constexpr int kMostThreads = 256;  // limit of the process in solver/parallel/task_arena.cc
// The solver stores trees times dofs per tree in an int.
constexpr int kMostTrees = 1 << 20;
constexpr int kMostTreeDofs = 2000;
// Protobuf itself limits a message to this size.
constexpr int64_t kLargestMessage_bytes = std::numeric_limits<int32_t>::max();

// Zero, which stands for "none", or what `others` accepts.
CLI::Validator ZeroOr(const CLI::Validator& others) {
  const std::string description = "0 or " + others.get_description();
  const auto check = [others, description](const std::string& text) {
    double value = 1;
    const bool is_zero = CLI::detail::lexical_cast(text, value) && value == 0;
    return is_zero || others(text).empty() ? std::string() : "'" + text + "' is not " + description;
  };
  return CLI::Validator(check, description);
}

void AddRecordingFlags(CLI::App* app, RecordingConfig* recording) {
  app->option_defaults()->group("Recording");
  using Rule = RecordingConfig::Rule;
  const std::map<std::string, Rule> rules{
      {"all", Rule::kAll}, {"failed", Rule::kFailed}, {"slower", Rule::kSlower}};
  CLI::Option* directory =
      app->add_option("--record", recording->directory,
                      "Existing directory for recordings of problems and answers; see sap-client "
                      "replay");
  CLI::Option* rule =
      app->add_option("--record-rule", recording->rule, "Problems to record: all, failed or slower")
          ->default_str("all")
          ->transform(OneOf(rules))
          ->needs(directory);
  app->add_option("--record-slower-than", recording->slower_than_s,
                  "Duration in seconds above which rule 'slower' records a problem")
      ->check(Between(0.0, 86'400.0))
      ->needs(rule);
  app->add_option("--record-max-bytes", recording->max_bytes,
                  "File size at which the recording ends")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()))
      ->needs(directory);
}

void AddSecurityFlags(CLI::App* app, SecurityConfig* security) {
  app->option_defaults()->group("Security");
  CLI::Option* certificate = app->add_option("--tls-cert", security->tls.certificate,
                                             "Certificate (PEM); reloaded when the file changes");
  CLI::Option* key =
      app->add_option("--tls-key", security->tls.key, "Private key of the certificate (PEM)")
          ->needs(certificate);
  certificate->needs(key);
  app->add_option("--tls-client-ca", security->tls.client_ca,
                  "CA certificate (PEM); every client needs a certificate signed by it")
      ->needs(certificate);
  app->add_option("--token-file", security->token_file,
                  "File with a client name, a bearer token and optional limits (key=value) per "
                  "line; every call needs a token");
  using Clients = SecurityConfig::HighPriorityClients;
  const std::map<std::string, Clients> clients{
      {"auto", Clients::kAuto}, {"all", Clients::kAll}, {"listed", Clients::kListed}};
  app->add_option("--high-priority-clients", security->high_priority_clients,
                  "Clients that may use high priority: all; listed: those with priority=high in "
                  "the token file; auto: listed with --token-file, else all")
      ->default_str("auto")
      ->transform(OneOf(clients));
  app->add_flag("--insecure-listen", security->insecure_listen,
                "Allow a non-local address without TLS, or without tokens or client CA");
}

void AddConnectionFlags(CLI::App* app, ConnectionConfig* connection) {
  app->option_defaults()->group("Connections");
  app->add_option("--max-streams-per-connection", connection->max_streams,
                  "Limit of concurrent calls on a connection; further calls wait in the client")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-header-bytes", connection->max_header_bytes,
                  "Limit of the header size of a call")
      ->check(CLI::Range(1024, 1 << 20));
  app->add_option("--handshake-timeout-s", connection->handshake_timeout_s,
                  "Timeout of connection setup")
      ->check(Between(0.1, 600.0));
  app->add_option("--keepalive-s", connection->keepalive_s,
                  "Silence on a connection before a keepalive ping is sent")
      ->check(Between(1.0, 86'400.0));
  app->add_option("--keepalive-timeout-s", connection->keepalive_timeout_s,
                  "Timeout of the keepalive acknowledgement; then the connection is closed")
      ->check(Between(0.1, 86'400.0));
  app->add_option("--connection-idle-s", connection->idle_s,
                  "Idle time after which a connection without calls is closed")
      ->check(Between(1.0, 1e6));
  app->add_option("--connection-age-s", connection->age_s,
                  "Age at which connections and sessions are asked to move, so that servers added "
                  "later get their share; 0: never")
      ->check(ZeroOr(Between(1.0, 1e6)));
  app->add_option(
         "--max-watches", connection->max_watches,
         "Limit of health Watch streams; beyond it the address that has most of them loses "
         "its oldest")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-watches-per-connection", connection->max_watches_per_connection,
                  "Limit of health Watch streams on one connection of TCP; a client has one")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-connection-memory-bytes", connection->max_memory_bytes,
                  "Limit of transport buffer memory, all connections together")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 40));
}

void AddAdmissionFlags(CLI::App* app, ServerConfig* config) {
  app->option_defaults()->group("Admission, in total and per client");
  const auto add = [app](auto* limits, const std::string& who, const std::string& what) {
    app->add_option("--max-" + who + "-calls", limits->max_calls,
                    "Limit of concurrent calls " + what + "; beyond it RESOURCE_EXHAUSTED")
        ->check(CLI::Range(1, 1'000'000));
    app->add_option("--max-" + who + "-bytes", limits->max_bytes,
                    "Limit of request bytes held " + what)
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
    app->add_option("--max-" + who + "-work-s", limits->max_work_s,
                    "Limit of predicted solve time held, in seconds, " + what)
        ->check(Between(0.0, 1e9));
  };
  add(&config->admission.all, "concurrent", "for all clients");
  Entitlements* client = &config->admission.client;
  add(client, "client", "for one client");
  app->add_option("--max-client-calls-per-s", client->max_calls_per_s,
                  "Limit of the rate of calls of one client, session steps not counted; 0: none")
      ->check(Between(0.0, 1e9));
  app->add_option("--max-solve-s", client->max_solve_s,
                  "Longest solve of a problem; then it ends as at a time budget")
      ->check(Between(1e-3, 86'400.0));
  app->add_option("--queue-timeout-s", config->queue_timeout_s,
                  "Longest wait of a problem in the queue")
      ->check(Between(0.0, 86'400.0));
}

void AddSessionFlags(CLI::App* app, ServerConfig* config) {
  app->option_defaults()->group("Sessions");
  SessionConfig* session = &config->session;
  app->add_option("--max-sessions", config->admission.all.max_sessions,
                  "Limit of open sessions; beyond it RESOURCE_EXHAUSTED")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-client-sessions", config->admission.client.max_sessions,
                  "Limit of open sessions of one client; beyond it RESOURCE_EXHAUSTED")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-steps-in-flight", session->max_steps_in_flight,
                  "Limit of steps per session that are accepted and not yet answered")
      ->check(CLI::Range(1, 1024));
  app->add_option("--session-idle-s", session->idle_s,
                  "Idle time after which a session ends with ABORTED")
      ->check(Between(0.1, 1e9));
  app->add_option("--write-timeout-s", session->write_timeout_s,
                  "Time for a client to receive an answer; then its call is cancelled")
      ->check(Between(0.1, 86'400.0));
}

void AddWorldFlags(CLI::App* app, WorldsConfig* worlds) {
  app->option_defaults()->group("Worlds");
  CLI::Option* library =
      app->add_option("--mujoco-library", worlds->mujoco_library,
                      "Library of MuJoCo whose worlds this server steps for clients: a path, or "
                      "auto for the libmujoco.so that the loader finds; without it none");
  app->add_option("--max-model-memory-mib", worlds->max_model_memory_mib,
                  "Limit of the models that are kept for all clients; beyond it the least recently "
                  "used one goes [MiB]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app->add_option("--max-client-model-memory-mib", worlds->max_client_model_memory_mib,
                  "Limit of the models that are kept for one client [MiB]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app->add_option("--max-world-memory-mib", worlds->max_world_memory_mib,
                  "Limit of the address space of a process that steps worlds: model, states, and "
                  "the libraries [MiB]")
      ->check(CLI::Range(int64_t{64}, int64_t{1} << 20));
  app->add_option("--max-model-load-s", worlds->max_model_load_s,
                  "Longest time to load a model; beyond it RESOURCE_EXHAUSTED")
      ->check(Between(0.01, 86'400.0));
  app->add_option("--max-step-s", worlds->max_step_s,
                  "Longest time of one step of a world; beyond it RESOURCE_EXHAUSTED")
      ->check(Between(0.01, 86'400.0));
  app->add_flag("--worlds-without-jail", worlds->without_jail,
                "Step worlds also where the kernel allows no jail for the processes that do: a "
                "model of a client may then be able to do what this program may")
      ->needs(library);
}

void AddMessageFlags(CLI::App* app, ServerConfig* config) {
  app->option_defaults()->group("Messages");
  app->add_option("--max-message-bytes", config->max_message_bytes,
                  "Limit of the size of a request, and of an answer of derivatives")
      ->check(CLI::Range(int64_t{1}, kLargestMessage_bytes));
  app->add_option("--read-timeout-s", config->read_timeout_s,
                  "Time for the server to receive a request; then the call is cancelled")
      ->check(Between(0.1, 86'400.0));
  app->add_option("--max-batch-problems", config->max_batch_problems, "Limit of problems per batch")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-derivatives", config->max_derivatives,
                  "Limit of cotangents and tangents of a problem to differentiate, together")
      ->check(CLI::Range(1, 1'000'000));
}

void AddProblemFlags(CLI::App* app, ServerConfig* config) {
  app->option_defaults()->group("Problems");
  app->add_option("--max-trees", config->problem.max_trees, "Limit of trees and bodies per problem")
      ->check(CLI::Range(1, kMostTrees));
  app->add_option("--max-tree-dofs", config->problem.max_tree_dofs,
                  "Limit of degrees of freedom per tree")
      ->check(CLI::Range(1, kMostTreeDofs));
  app->add_option("--max-contacts", config->problem.max_contacts, "Limit of contacts per problem")
      ->check(CLI::Range(1, 1 << 26));
  app->add_option("--max-rows", config->problem.max_rows, "Limit of constraint rows per problem")
      ->check(CLI::Range(1, 1 << 26));
  app->add_option("--max-row-entries", config->problem.max_row_entries,
                  "Limit of entries of all constraint rows of a problem")
      ->check(CLI::Range(1, 1 << 28));
  app->add_option("--max-row-pairs", config->problem.max_row_pairs,
                  "Limit of pairs of trees that the rows of a problem join: k (k - 1) / 2 for a "
                  "row over k trees; also of those that contacts by parts join, and of coupled "
                  "trees")
      ->check(CLI::Range(1, 1 << 26));
  app->add_option("--max-iterations", config->max_iterations,
                  "Largest iteration limit that a client may request")
      ->check(CLI::Range(1, 1'000'000));
  app->add_option("--max-solve-memory-mib", config->max_solve_memory_mib,
                  "Limit of memory for the factorization of a problem, for what else it takes, and "
                  "for its derivatives [MiB]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
}

void AddThreadFlags(CLI::App* app, ServerConfig* config) {
  app->option_defaults()->group("Addresses and threads");
  app->add_option("--listen", config->listen,
                  "Listen address: HOST:PORT (port 0: any free port) or unix:PATH")
      ->check(ListenAddress());
  app->add_option("--threads", config->threads,
                  "Arena threads, which solve large problems; by default one per processor, or as "
                  "many as the quota of the control group keeps busy")
      ->check(CLI::Range(1, kMostThreads));
  app->add_option("--solver-nice", config->solver_nice,
                  "Nice value of the arena threads, which lowers them below the io threads and the "
                  "high-priority thread; 10 is recommended on a dedicated machine")
      ->check(CLI::Range(0, 19));
  app->add_option(
         "--io-threads", config->io_threads,
         "Threads that receive calls and solve small problems; from two on, one of them assists "
         "the others under load")
      ->check(CLI::Range(1, kMostThreads));
  app->add_option("--idle-spinners", config->idle_spinners,
                  "Limit of idle-priority spinners that keep processors out of sleep states for "
                  "low-latency sessions; 0 where processor time is shared or paid for, and by "
                  "default where a control group limits it")
      ->check(CLI::Range(0, kMostThreads));
  app->add_option("--inline-below-us", config->inline_below_us,
                  "Problems with a smaller predicted solve time are solved on the receiving thread")
      ->check(Between(0.0, 1e6));
  app->add_option(
         "--memory-limit-bytes", config->memory_limit_bytes,
         "Limit of resident memory, of which at 80 % new calls are refused; 0: that of the "
         "control group, or the memory of the machine")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 50));
}

void AddOperationsFlags(CLI::App* app, ServerConfig* config) {
  app->option_defaults()->group("Operations");
  app->add_option("--lame-duck-s", config->lame_duck_s,
                  "Lame-duck period after SIGTERM or SIGINT: health is NOT_SERVING and sessions "
                  "are notified, but calls are still accepted")
      ->check(Between(0.0, 86'400.0));
  app->add_option("--drain-timeout-s", config->drain_timeout_s,
                  "Time for in-flight calls to finish after the lame-duck period")
      ->check(Between(0.0, 86'400.0));
  const std::map<std::string, LogLevel> levels{{"debug", LogLevel::kDebug},
                                               {"info", LogLevel::kInfo},
                                               {"warning", LogLevel::kWarning},
                                               {"error", LogLevel::kError}};
  app->add_option("--log-level", config->log.level, "Log verbosity: debug, info, warning or error")
      ->default_str("info")
      ->transform(OneOf(levels));
  app->add_option("--log-file", config->log.file, "Log file; standard error if not given");
  app->add_option("--slow-call-s", config->log.slow_call_s,
                  "Duration from which a call is logged as slow")
      ->check(Between(0.0, 86'400.0));
  OperationsConfig* operations = &config->operations;
  app->add_option("--metrics-listen", operations->metrics_listen,
                  "HOST:PORT of the Prometheus endpoint and the probes: plain HTTP without tokens, "
                  "so on a non-local address only within a trusted network")
      ->check(ListenHostPort());
  app->add_option("--otlp-collector", operations->otlp_collector,
                  "HOST:PORT or unix:PATH of a collector of OpenTelemetry, which gets the spans of "
                  "calls whose header traceparent is sampled: OTLP over gRPC, without TLS")
      ->check(ListenAddress());
  CLI::Option* admin = app->add_option("--admin-listen", operations->admin_listen,
                                       "HOST:PORT or unix:PATH of the admin service; a non-local "
                                       "address needs TLS and --admin-token-file")
                           ->check(ListenAddress());
  app->add_option("--admin-token-file", operations->admin_token_file,
                  "File with an operator name and a bearer token per line")
      ->needs(admin);
}

void AddFlags(CLI::App* app, ServerConfig* config) {
  app->set_version_flag("--version", ServerVersion());
  app->set_config("--config", "", "File of flags (TOML), one in each line: max-trees = 100");
  app->config_formatter(std::make_shared<FlagFile>(app));
  app->footer(
      "The environment can have each flag as well: SAP_MAX_TREES is --max-trees. The command line\n"
      "counts before the environment, and this before the file.\n");
  AddThreadFlags(app, config);
  AddSecurityFlags(app, &config->security);
  AddMessageFlags(app, config);
  AddProblemFlags(app, config);
  AddConnectionFlags(app, &config->connection);
  AddAdmissionFlags(app, config);
  AddSessionFlags(app, config);
  AddWorldFlags(app, &config->worlds);
  AddOperationsFlags(app, config);
  AddRecordingFlags(app, &config->recording);
}

// Refuses a non-local address without TLS or without client authentication, unless the operator
// insists. Returns an error message, or an empty string.
std::string CheckListen(const ServerConfig& config) {
  const SecurityConfig& security = config.security;
  if (security.insecure_listen || IsLocal(config.listen)) return "";
  const std::string beyond = config.listen + " is reachable from other machines: ";
  if (security.tls.certificate.empty()) {
    return beyond + "give --tls-cert and --tls-key, or --insecure-listen";
  }
  if (security.tls.client_ca.empty() && security.token_file.empty()) {
    return beyond + "give --token-file or --tls-client-ca, or --insecure-listen";
  }
  return "";
}

bool EveryClientMayUseHighPriority(const SecurityConfig& security) {
  using Clients = SecurityConfig::HighPriorityClients;
  if (security.high_priority_clients != Clients::kAuto) {
    return security.high_priority_clients == Clients::kAll;
  }
  return security.token_file.empty();
}

// The admin service drains the server and writes files. Certificates do not tell operators from
// clients, so beyond this machine it always needs tokens of operators, and TLS to protect them.
std::string CheckAdminListen(const ServerConfig& config) {
  const OperationsConfig& operations = config.operations;
  if (operations.admin_listen.empty() || IsLocal(operations.admin_listen)) return "";
  if (!config.security.tls.certificate.empty() && !operations.admin_token_file.empty()) return "";
  return operations.admin_listen +
         " is reachable from other machines: --admin-listen needs "
         "--tls-cert, --tls-key and --admin-token-file there";
}

}  // namespace

std::optional<int> ReadServerFlags(int argc, const char* const* argv,
                                   const char* const* environment, ServerConfig* config) {
  CLI::App app("Solves frictional contact problems sent over gRPC.", "sap-server");
  app.option_defaults()->always_capture_default();
  AddFlags(&app, config);
  std::vector<std::string> from_environment;
  const std::vector<const char*> arguments =
      WithEnvironment(app, argc, argv, environment, &from_environment);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    std::string error = CheckListen(*config);
    if (error.empty()) error = CheckAdminListen(*config);
    if (!error.empty()) {
      return ExitAfter(app, CLI::ValidationError("listening", error), kUsageError);
    }
  } catch (const CLI::ParseError& error) {
    return ExitAfter(app, error, kUsageError);
  }
  config->problem.max_coupled_bytes = static_cast<size_t>(config->max_solve_memory_mib) << 20;
  config->admission.client.max_model_bytes = config->worlds.max_client_model_memory_mib << 20;
  config->admission.client.high_priority = EveryClientMayUseHighPriority(config->security);
  return std::nullopt;
}

}  // namespace sap
