// The command sap-server: serves until SIGTERM or SIGINT, finishes what is running, and exits 0.
#include <absl/synchronization/mutex.h>
#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "server/auth/bearer_tokens.h"
#include "server/engine/engine.h"
#include "server/engine/metrics.h"
#include "server/engine/request_recorder.h"
#include "server/ops/call_log.h"
#include "server/ops/call_observer.h"
#include "server/ops/metrics_endpoint.h"
#include "server/rpc/admin_server.h"
#include "server/rpc/grpc_server.h"
#include "server/server_config.h"

namespace {

using sap::LogLevel;

// Blocked in every thread, so that the main thread can wait for them.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// A connection takes a descriptor, and gRPC 1.51 takes no more connections once it ran out of them.
void AskForAllDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

// Everything that runs beside the main service. Each part outlives those after it.
struct Server {
  std::unique_ptr<sap::CallLog> log;
  std::unique_ptr<sap::BearerTokens> tokens;
  std::unique_ptr<sap::BearerTokens> operator_tokens;
  std::unique_ptr<sap::RequestRecorder> recorder;
  sap::Metrics metrics;
  std::unique_ptr<sap::Engine> engine;
  std::unique_ptr<sap::GrpcServer> grpc;
  std::unique_ptr<sap::MetricsEndpoint> endpoint;
  std::unique_ptr<sap::AdminServer> admin;
};

// The error of a part that could not be started; empty if it could.
template <typename Part>
std::string Set(tl::expected<std::unique_ptr<Part>, std::string> made,
                std::unique_ptr<Part>* part) {
  if (!made) return made.error();
  *part = std::move(*made);
  return "";
}

std::string StartFiles(const sap::ServerConfig& config, Server* server) {
  const auto warn = [log = server->log.get()](const std::string& message) {
    log->Message(LogLevel::kWarning, message);
  };
  std::string error;
  if (!config.security.token_file.empty()) {
    error = Set(sap::BearerTokens::Open(config.security.token_file, warn), &server->tokens);
  }
  if (error.empty() && !config.operations.admin_token_file.empty()) {
    error = Set(sap::BearerTokens::Open(config.operations.admin_token_file, warn),
                &server->operator_tokens);
  }
  server->recorder = std::make_unique<sap::RequestRecorder>(warn);
  if (error.empty() && !config.recording.directory.empty()) {
    const auto path = server->recorder->Begin(config.recording);
    if (!path) return path.error();
    server->log->Message(LogLevel::kInfo, "recording to " + *path);
  }
  return error;
}

std::string StartServices(const sap::ServerConfig& config, Server* server) {
  server->engine = std::make_unique<sap::Engine>(config, server->recorder.get(), &server->metrics);
  const sap::CallObserver watch(&server->metrics, server->log.get());
  const sap::OperationsConfig& operations = config.operations;
  const sap::TlsConfig& tls = config.security.tls;
  if (!operations.metrics_listen.empty()) {
    std::string error = Set(sap::MetricsEndpoint::Start(operations.metrics_listen, &server->metrics,
                                                        server->engine.get(), tls.certificate),
                            &server->endpoint);
    if (!error.empty()) return error;
    server->log->Message(LogLevel::kInfo, "metrics on " + server->endpoint->address());
  }
  if (!operations.admin_listen.empty()) {
    std::string error = Set(sap::AdminServer::Start(operations.admin_listen, tls,
                                                    {.drain = [] { kill(getpid(), SIGTERM); },
                                                     .log = server->log.get(),
                                                     .recorder = server->recorder.get(),
                                                     .recording = config.recording,
                                                     .tokens = server->operator_tokens.get()}),
                            &server->admin);
    if (!error.empty()) return error;
    server->log->Message(LogLevel::kInfo, "admin calls on " + server->admin->address());
  }
  return Set(sap::GrpcServer::Start(config, server->engine.get(), server->tokens.get(), watch),
             &server->grpc);
}

void Drain(const sap::ServerConfig& config, int signal, Server* server) {
  const std::string name = strsignal(signal);
  if (config.lame_duck_s > 0) {
    server->log->Message(LogLevel::kInfo, name + ": telling clients to turn elsewhere, for " +
                                              std::to_string(config.lame_duck_s) + " s");
    server->grpc->AnnounceDrain();
    std::this_thread::sleep_for(Nanoseconds(config.lame_duck_s));
  }
  server->log->Message(LogLevel::kInfo, name + ": finishing the calls that run, for at most " +
                                            std::to_string(config.drain_timeout_s) + " s");
  server->grpc->Drain(Nanoseconds(config.drain_timeout_s));
}

}  // namespace

int main(int argc, char** argv) {
  sap::ServerConfig config;
  if (const auto exit_code = sap::ReadServerFlags(argc, argv, &config)) return *exit_code;
  // Debian's Abseil looks for cycles whenever gRPC takes a lock, which costs more than the lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Bytes that are no message would have it write to standard error, as often as they come.
  google::protobuf::SetLogHandler(nullptr);
  const sigset_t signals = BlockStopSignals();
  AskForAllDescriptors();
  Server server;
  std::string error = Set(sap::CallLog::Open(config.log), &server.log);
  if (!error.empty()) {
    std::fprintf(stderr, "sap-server: %s\n", error.c_str());
    return EXIT_FAILURE;
  }
  error = StartFiles(config, &server);
  if (error.empty()) error = StartServices(config, &server);
  if (!error.empty()) {
    server.log->Message(LogLevel::kError, error);
    return EXIT_FAILURE;
  }
  server.log->Message(LogLevel::kInfo, std::string("version ") + SAP_VERSION + ", " +
                                           std::to_string(config.threads) + " solver threads, " +
                                           std::to_string(config.io_threads) + " io threads");
  std::printf("listening on %s\n", server.grpc->address().c_str());
  std::fflush(stdout);

  int signal = 0;
  sigwait(&signals, &signal);
  Drain(config, signal, &server);
  server.log->Message(LogLevel::kInfo, "done");
  return EXIT_SUCCESS;
}
