// The sap-server command. On SIGTERM or SIGINT it drains in-flight calls and exits with 0; a second
// one ends it at once, with 128 plus the number of the signal. SIGHUP reopens the log file.
#include <absl/synchronization/mutex.h>
#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
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
#include "server/ops/call_log.h"
#include "server/ops/call_observer.h"
#include "server/ops/grpc_log.h"
#include "server/ops/metrics_endpoint.h"
#include "server/rpc/admin_server.h"
#include "server/rpc/grpc_server.h"
#include "server/server_config.h"
#include "server/service/metrics.h"
#include "server/service/request_handler.h"
#include "server/service/request_recorder.h"

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

// The first request to shut down, from a signal or from an operator.
class ShutdownRequest {
 public:
  void Make(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (!reason_.empty()) return;
      reason_ = reason;
    }
    made_.notify_all();
  }

  // Waits for it; returns its reason.
  std::string Await() {
    std::unique_lock lock(mutex_);
    made_.wait(lock, [this] { return !reason_.empty(); });
    return reason_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable made_;
  std::string reason_;
};

// Handles signals while the main thread starts, waits or drains.
class SignalThread {
 public:
  SignalThread(const sigset_t& signals, sap::CallLog* log, ShutdownRequest* shutdown)
      : signals_(signals), log_(log), shutdown_(shutdown), thread_([this] { Run(); }) {}

  ~SignalThread() {
    stopping_ = true;
    pthread_kill(thread_.native_handle(), SIGHUP);
    thread_.join();
  }

 private:
  void Run() {
    bool shutting_down = false;
    for (int signal = 0; sigwait(&signals_, &signal) == 0 && !stopping_;) {
      if (signal == SIGHUP) {
        ReopenLog();
      } else if (shutting_down) {
        // Neither flushes nor destructs: either may be what does not end.
        std::fprintf(stderr, "sap-server: %s again; ends without a drain\n", strsignal(signal));
        _exit(128 + signal);
      } else {
        shutting_down = true;
        shutdown_->Make(strsignal(signal));
      }
    }
  }

  void ReopenLog() {
    const std::string error = log_->Reopen();
    if (error.empty()) {
      log_->Message(LogLevel::kInfo, "log file reopened");
    } else {
      log_->Message(LogLevel::kError, error + "; the old file is written on");
    }
  }

  const sigset_t signals_;
  sap::CallLog* const log_;
  ShutdownRequest* const shutdown_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Each connection needs a file descriptor. Once descriptors have run out, gRPC 1.51 accepts no more
// connections until the process is restarted.
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
  sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&name),
         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
  close(fd);
}

std::chrono::nanoseconds Nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

// Components of the process. Declaration order is lifetime order: a component may use those above
// it.
struct Server {
  sap::CallLog* log{nullptr};
  ShutdownRequest* shutdown{nullptr};
  std::optional<sap::GrpcLog> grpc_log;
  std::unique_ptr<sap::BearerTokens> tokens;
  std::unique_ptr<sap::BearerTokens> operator_tokens;
  std::unique_ptr<sap::RequestRecorder> recorder;
  sap::Metrics metrics;
  std::unique_ptr<sap::RequestHandler> handler;
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
                      config.operations.admin_listen, config.security.tls,
                      {.drain = [shutdown = server->shutdown] { shutdown->Make("operator"); },
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

std::string StartServices(const sap::ServerConfig& config, Server* server) {
  server->handler =
      std::make_unique<sap::RequestHandler>(config, server->recorder.get(), &server->metrics);
  const sap::CallObserver observer(&server->metrics, server->log);
  const sap::OperationsConfig& operations = config.operations;
  const sap::TlsConfig& tls = config.security.tls;
  if (!operations.metrics_listen.empty()) {
    std::string error =
        StoreResult(sap::MetricsEndpoint::Start(operations.metrics_listen, &server->metrics,
                                                server->handler.get(), tls.certificate),
                    &server->endpoint);
    if (!error.empty()) return error;
    server->log->Message(LogLevel::kInfo, "metrics on " + server->endpoint->address());
  }
  // The main address first: a second server of the same configuration fails here, before it touches
  // the operators' address.
  std::string error = StoreResult(
      sap::GrpcServer::Start(config, server->handler.get(), server->tokens.get(), observer),
      &server->grpc);
  if (error.empty() && !operations.admin_listen.empty()) error = StartAdmin(config, server);
  if (error.empty() && server->endpoint != nullptr) {
    server->endpoint->SetServed(server->grpc->address());
    server->endpoint->SetReady(true);
  }
  return error;
}

void Drain(const sap::ServerConfig& config, const std::string& reason, Server* server) {
  NotifyServiceManager("STOPPING=1");
  if (server->endpoint != nullptr) server->endpoint->SetReady(false);
  if (config.lame_duck_s > 0) {
    server->log->Message(LogLevel::kInfo,
                         reason + ": lame duck for " + std::to_string(config.lame_duck_s) + " s");
    server->grpc->AnnounceDrain();
    std::this_thread::sleep_for(Nanoseconds(config.lame_duck_s));
  }
  server->log->Message(LogLevel::kInfo, reason + ": draining in-flight calls for at most " +
                                            std::to_string(config.drain_timeout_s) + " s");
  server->grpc->Drain(Nanoseconds(config.drain_timeout_s));
}

}  // namespace

int main(int argc, char** argv) {
  sap::ServerConfig config;
  if (const auto exit_code = sap::ReadServerFlags(argc, argv, &config)) return *exit_code;
  // Debian's Abseil runs lock-order cycle detection on every gRPC lock, which costs more than the
  // lock itself.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // gRPC 1.51 has one epoll set for all of its queues, and a single thread at a time that waits for
  // it. With poll(), each thread waits for the sockets of its own queue.
  if (config.io_threads > 2) setenv("GRPC_POLL_STRATEGY", "poll", /*overwrite=*/0);
  // Protobuf would log every malformed message to standard error, at a rate that clients control.
  google::protobuf::SetLogHandler(nullptr);
  const sigset_t signals = BlockSignals();
  RaiseDescriptorLimit();
  std::unique_ptr<sap::CallLog> log;
  std::string error = StoreResult(sap::CallLog::Open(config.log), &log);
  if (!error.empty()) {
    std::fprintf(stderr, "sap-server: %s\n", error.c_str());
    return EXIT_FAILURE;
  }
  ShutdownRequest shutdown;
  const SignalThread signal_thread(signals, log.get(), &shutdown);
  Server server;
  server.log = log.get();
  server.shutdown = &shutdown;
  server.grpc_log.emplace(server.log);
  error = StartFiles(config, &server);
  if (error.empty()) error = StartServices(config, &server);
  if (!error.empty()) {
    log->Message(LogLevel::kError, error);
    return EXIT_FAILURE;
  }
  log->Message(LogLevel::kInfo, std::string("version ") + SAP_VERSION + ", " +
                                    std::to_string(config.threads) + " solver threads, " +
                                    std::to_string(config.io_threads) + " io threads");
  std::printf("listening on %s\n", server.grpc->address().c_str());
  std::fflush(stdout);
  NotifyServiceManager("READY=1");

  Drain(config, shutdown.Await(), &server);
  log->Message(LogLevel::kInfo, "done");
  return EXIT_SUCCESS;
}
