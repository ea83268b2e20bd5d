// The sap-server command. On SIGTERM or SIGINT it drains in-flight calls and exits with 0; a second
// one ends it at once, with 128 plus the number of the signal. SIGHUP reopens the log file.
#include <absl/synchronization/mutex.h>
#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "server/auth/bearer_tokens.h"
#include "server/auth/tls_credentials.h"
#include "server/ops/call_log.h"
#include "server/ops/call_observer.h"
#include "server/ops/grpc_log.h"
#include "server/ops/metrics_endpoint.h"
#include "server/ops/trace_exporter.h"
#include "server/rpc/admin_server.h"
#include "server/rpc/grpc_server.h"
#include "server/server_config.h"
#include "server/server_identity.h"
#include "server/service/memory_reserve.h"
#include "server/service/metrics.h"
#include "server/service/request_handler.h"
#include "server/service/request_recorder.h"
#include "server/worlds/world_handler.h"

namespace {

using sap::LogLevel;

// Blocks the signals in every thread, so that SignalThread alone receives them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Why the server shuts down, and with which code the process then ends.
struct Shutdown {
  std::string reason;
  int exit_code{EXIT_SUCCESS};
};

// The first request to shut down: from a signal, from an operator, or since nobody can connect.
class ShutdownRequest {
 public:
  void Make(const Shutdown& shutdown) {
    {
      const std::lock_guard lock(mutex_);
      if (shutdown_) return;
      shutdown_ = shutdown;
    }
    made_.notify_all();
  }

  // Waits for it.
  Shutdown Await() {
    std::unique_lock lock(mutex_);
    made_.wait(lock, [this] { return shutdown_.has_value(); });
    return *shutdown_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable made_;
  std::optional<Shutdown> shutdown_;
};

// Longest time that the end of the process may take after the drain, whatever it waits for: a disk
// or a file system that hangs, a pipe that nobody reads, a transport with a backlog.
constexpr std::chrono::seconds kEnd{1};
// For the line about a second signal.
constexpr std::chrono::milliseconds kLastLine{100};

void EndWithin(std::chrono::nanoseconds time, int exit_code) {
  std::thread([time, exit_code] {
    std::this_thread::sleep_for(time);
    _exit(exit_code);
  }).detach();
}

// Handles signals while the main thread starts, waits or drains. Waits for nothing but signals.
class SignalThread {
 public:
  SignalThread(const sigset_t& signals, ShutdownRequest* shutdown)
      : signals_(signals), shutdown_(shutdown), thread_([this] { Run(); }) {}

  ~SignalThread() {
    stopping_ = true;
    pthread_kill(thread_.native_handle(), SIGHUP);
    thread_.join();
  }

  // Which must outlive this object.
  void SetLog(sap::CallLog* log) { log_ = log; }

  // From here on the main thread waits for the shutdown.
  void SetStarted() { started_ = true; }

 private:
  void Run() {
    bool shutting_down = false;
    for (int signal = 0; sigwait(&signals_, &signal) == 0 && !stopping_;) {
      sap::CallLog* const log = log_;
      if (signal == SIGHUP) {
        if (log != nullptr) log->Reopen();
      } else if (shutting_down) {
        if (log != nullptr) {
          log->Message(LogLevel::kWarning,
                       std::string(strsignal(signal)) + " again: ends without a drain");
          log->Flush(kLastLine);
        }
        // Without destructors: one of them may be what does not end.
        _exit(128 + signal);
      } else {
        shutting_down = true;
        shutdown_->Make({strsignal(signal)});
        // A server that has not begun to serve has nothing to drain, and may wait for a file.
        if (!started_) EndWithin(kEnd, EXIT_SUCCESS);
      }
    }
  }

  const sigset_t signals_;
  ShutdownRequest* const shutdown_;
  std::atomic<sap::CallLog*> log_{nullptr};
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Each connection needs a file descriptor. Once descriptors have run out, gRPC 1.51 accepts no more
// connections, and the server ends (ops/grpc_log.h).
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Tells systemd, where it waits for it (Type=notify): the protocol of sd_notify(3), one datagram.
void NotifyServiceManager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) >= sizeof name.sun_path) return;
  const size_t length = std::strlen(path);
  std::memcpy(name.sun_path, path, length);
  if (name.sun_path[0] == '@') name.sun_path[0] = '\0';  // of the abstract namespace
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const timeval timeout{.tv_sec = 1, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&name),
         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  close(fd);
}

// "0.5 s"
std::string Seconds(double seconds) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%g s", seconds);
  return text.data();
}

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

// Whether a descriptor is the journal of systemd; see systemd.exec(5).
bool IsJournal(int fd) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || fstat(fd, &status) != 0) return false;
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

void SetEnvironmentOfWorlds(sap::WorldsConfig* worlds) {
  if (const char* const paths = std::getenv("LD_LIBRARY_PATH")) worlds->library_path = paths;
  const char* const library = std::getenv("SAP_MUJOCO_LIBRARY");
  const bool is_named = library != nullptr && *library != '\0';
  if (worlds->mujoco_library == "auto" && is_named) worlds->mujoco_library = library;
}

// Components of the process. Declaration order is lifetime order: a component may use those above
// it.
struct Server {
  sap::CallLog* log{nullptr};
  ShutdownRequest* shutdown{nullptr};
  std::optional<sap::GrpcLog> grpc_log;
  std::unique_ptr<sap::BearerTokens> tokens;
  std::unique_ptr<sap::BearerTokens> operator_tokens;
  std::unique_ptr<sap::ServerCertificates> certificates;  // null: plain text
  std::unique_ptr<sap::RequestRecorder> recorder;
  sap::Metrics metrics;
  std::unique_ptr<sap::TraceExporter> traces;  // null: no collector
  std::unique_ptr<sap::RequestHandler> handler;
  std::unique_ptr<sap::WorldHandler> worlds;  // null: it steps none
  std::unique_ptr<sap::GrpcServer> grpc;
  std::unique_ptr<sap::MetricsEndpoint> endpoint;
  std::unique_ptr<sap::AdminServer> admin;
};

// Stores a started component; returns the error message if it could not be started, or an empty
// string.
template <typename Part>
std::string StoreResult(tl::expected<std::unique_ptr<Part>, std::string> result,
                        std::unique_ptr<Part>* part) {
  if (!result) return result.error();
  *part = std::move(*result);
  return "";
}

std::string StartFiles(const sap::ServerConfig& config, Server* server) {
  const auto warn = [log = server->log](const std::string& message) {
    log->Message(LogLevel::kWarning, message);
  };
  std::string error;
  if (!config.security.token_file.empty()) {
    error = StoreResult(
        sap::BearerTokens::Open(config.security.token_file, warn, config.admission.client),
        &server->tokens);
  }
  if (error.empty() && !config.operations.admin_token_file.empty()) {
    error = StoreResult(sap::BearerTokens::Open(config.operations.admin_token_file, warn),
                        &server->operator_tokens);
  }
  if (error.empty() && !config.security.tls.certificate.empty()) {
    error = StoreResult(sap::ServerCertificates::Open(config.security.tls, warn),
                        &server->certificates);
  }
  server->recorder = std::make_unique<sap::RequestRecorder>(warn);
  if (error.empty() && !config.recording.directory.empty()) {
    const auto path = server->recorder->Begin(config.recording);
    if (!path) return path.error();
    server->log->Message(LogLevel::kInfo, "recording to " + *path);
  }
  return error;
}

std::string StartAdmin(const sap::ServerConfig& config, Server* server) {
  std::string error =
      StoreResult(sap::AdminServer::Start(
                      config.operations.admin_listen, server->certificates.get(),
                      {.drain = [shutdown = server->shutdown] { shutdown->Make({"operator"}); },
                       .log = server->log,
                       .recorder = server->recorder.get(),
                       .recording = config.recording,
                       .tokens = server->operator_tokens.get()}),
                  &server->admin);
  if (error.empty()) {
    server->log->Message(LogLevel::kInfo, "admin service on " + server->admin->address());
  }
  return error;
}

// Before anything listens: where the library is none, or the kernel allows no jail, there is no
// server.
std::string StartHandlers(const sap::ServerConfig& config, Server* server) {
  server->handler =
      std::make_unique<sap::RequestHandler>(config, server->recorder.get(), &server->metrics);
  if (config.worlds.mujoco_library.empty()) return "";
  std::string error = StoreResult(
      sap::WorldHandler::Start(config, server->handler.get(), &server->metrics), &server->worlds);
  if (!error.empty()) return error;
  const sap::WorkerGreeting& worker = server->worlds->greeting();
  server->log->Message(LogLevel::kInfo,
                       "steps worlds of MuJoCo " + sap::NameOfVersion(worker.mujoco_version));
  if (!worker.is_jailed) {
    server->log->Message(LogLevel::kWarning,
                         "worlds are stepped without a jail: models of clients may do what this "
                         "program may");
  }
  return "";
}

std::string StartServices(const sap::ServerConfig& config, Server* server) {
  const sap::OperationsConfig& operations = config.operations;
  if (!operations.otlp_collector.empty()) {
    server->traces = std::make_unique<sap::TraceExporter>(
        operations.otlp_collector,
        [log = server->log](const std::string& line) { log->Message(LogLevel::kWarning, line); });
  }
  const sap::CallObserver observer(&server->metrics, server->log, server->traces.get());
  if (!operations.metrics_listen.empty()) {
    std::string error =
        StoreResult(sap::MetricsEndpoint::Start(operations.metrics_listen,
                                                {.metrics = &server->metrics,
                                                 .handler = server->handler.get(),
                                                 .certificates = server->certificates.get(),
                                                 .tokens = server->tokens.get(),
                                                 .log = server->log,
                                                 .traces = server->traces.get(),
                                                 .worlds = server->worlds.get()}),
                    &server->endpoint);
    if (!error.empty()) return error;
    server->log->Message(LogLevel::kInfo, "metrics on " + server->endpoint->address());
  }
  // The main address first: a second server of the same configuration fails here, before it touches
  // the operators' address.
  std::string error = StoreResult(
      sap::GrpcServer::Start(config, server->handler.get(), server->tokens.get(), observer,
                             server->certificates.get(), server->worlds.get()),
      &server->grpc);
  if (error.empty() && !operations.admin_listen.empty()) error = StartAdmin(config, server);
  if (error.empty() && server->endpoint != nullptr) {
    server->endpoint->SetServed(server->grpc->address());
    server->endpoint->SetReady(true);
  }
  return error;
}

void Drain(const sap::ServerConfig& config, const Shutdown& shutdown, Server* server) {
  NotifyServiceManager("STOPPING=1");
  const std::string& reason = shutdown.reason;
  if (server->endpoint != nullptr) {
    server->endpoint->SetReady(false);
    if (shutdown.exit_code != EXIT_SUCCESS) server->endpoint->SetDead();
  }
  if (shutdown.exit_code != EXIT_SUCCESS) server->log->Message(LogLevel::kError, reason);
  if (config.lame_duck_s > 0) {
    server->log->Message(LogLevel::kInfo,
                         reason + ": lame duck for " + Seconds(config.lame_duck_s));
    server->grpc->AnnounceDrain();
    std::this_thread::sleep_for(Nanoseconds(config.lame_duck_s));
  }
  server->log->Message(LogLevel::kInfo, reason + ": draining in-flight calls for at most " +
                                            Seconds(config.drain_timeout_s));
  server->grpc->Drain(Nanoseconds(config.drain_timeout_s));
}

}  // namespace

int main(int argc, char** argv) {
  sap::ServerConfig config;
  if (const auto exit_code = sap::ReadServerFlags(argc, argv, environ, &config)) return *exit_code;
  SetEnvironmentOfWorlds(&config.worlds);
  // Debian's Abseil runs lock-order cycle detection on every gRPC lock, which costs more than the
  // lock itself.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC 1.51 has one epoll set for all of its queues, and a single thread at a time that waits for
  // it. With poll(), each thread waits for the sockets of its own queue.
  if (config.io_threads > 2) setenv("GRPC_POLL_STRATEGY", "poll", /*overwrite=*/0);
  // With NONE no line would tell that a listener has ended (ops/grpc_log.h). Not set, it is ERROR.
  const char* const verbosity = std::getenv("GRPC_VERBOSITY");
  if (verbosity != nullptr && strcasecmp(verbosity, "NONE") == 0) unsetenv("GRPC_VERBOSITY");
  // Protobuf would log every malformed message to standard error, at a rate that clients control.
  google::protobuf::SetLogHandler(nullptr);
  const sigset_t signals = BlockSignals();
  // The reader of the log or of standard output may go.
  std::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  sap::MemoryReserve::Install();
  std::unique_ptr<sap::CallLog> log;
  ShutdownRequest shutdown;
  SignalThread signal_thread(signals, &shutdown);
  std::string error = StoreResult(sap::CallLog::Open(config.log), &log);
  if (!error.empty()) {
    std::fprintf(stderr, "sap-server: %s\n", error.c_str());
    return sap::kUsageError;
  }
  signal_thread.SetLog(log.get());
  Server server;
  server.log = log.get();
  server.shutdown = &shutdown;
  server.grpc_log.emplace(server.log, [&shutdown] {
    shutdown.Make(
        {"connections are no longer accepted; are there descriptors left?", EXIT_FAILURE});
  });
  int failure = sap::kUsageError;
  error = StartFiles(config, &server);
  if (error.empty()) error = StartHandlers(config, &server);
  if (error.empty()) {
    failure = EXIT_FAILURE;
    error = StartServices(config, &server);
  }
  if (!error.empty()) {
    EndWithin(kEnd, failure);
    log->Message(LogLevel::kError, error);
    return failure;
  }
  log->Message(LogLevel::kInfo, std::string("version ") + sap::ServerVersion() + ", " +
                                    std::to_string(config.threads) + " solver threads, " +
                                    std::to_string(config.io_threads) + " io threads");
  const std::string listening = "listening on " + server.grpc->address();
  log->Message(LogLevel::kInfo, listening);
  // For scripts; the journal has the line of the log, as JSON.
  if (!config.log.file.empty() || !IsJournal(STDOUT_FILENO)) {
    std::puts(listening.c_str());
    std::fflush(stdout);
  }
  NotifyServiceManager("READY=1");
  signal_thread.SetStarted();

  const Shutdown request = shutdown.Await();
  EndWithin(Nanoseconds(config.lame_duck_s) + Nanoseconds(config.drain_timeout_s) + 2 * kEnd,
            request.exit_code);
  Drain(config, request, &server);
  EndWithin(kEnd, request.exit_code);
  log->Message(LogLevel::kInfo, "done");
  return request.exit_code;
}
