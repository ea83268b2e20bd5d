// The command sap-server: serves until SIGTERM or SIGINT, finishes what is running, and exits 0.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "server/bearer_tokens.h"
#include "server/engine.h"
#include "server/grpc_server.h"
#include "server/request_recorder.h"
#include "server/server_config.h"

namespace {

// Blocked in every thread, so that the main thread can wait for them.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void Warn(const std::string& message) { spdlog::warn("{}", message); }

}  // namespace

int main(int argc, char** argv) {
  sap::ServerConfig config;
  if (const auto exit_code = sap::ReadServerFlags(argc, argv, &config)) return *exit_code;
  spdlog::set_default_logger(spdlog::stderr_logger_mt("sap-server"));
  const sigset_t signals = BlockStopSignals();

  std::unique_ptr<sap::RequestRecorder> recorder;
  if (!config.recording.directory.empty()) {
    auto opened = sap::RequestRecorder::Open(config.recording, Warn);
    if (!opened) {
      spdlog::error("{}", opened.error());
      return EXIT_FAILURE;
    }
    recorder = std::move(*opened);
    spdlog::info("recording to {}", recorder->path());
  }
  std::unique_ptr<sap::BearerTokens> tokens;
  if (!config.security.token_file.empty()) {
    auto opened = sap::BearerTokens::Open(config.security.token_file, Warn);
    if (!opened) {
      spdlog::error("{}", opened.error());
      return EXIT_FAILURE;
    }
    tokens = std::move(*opened);
  }
  sap::Engine engine(config, recorder.get());
  const auto server = sap::GrpcServer::Start(config, &engine, tokens.get());
  if (!server) {
    spdlog::error("{}", server.error());
    return EXIT_FAILURE;
  }
  spdlog::info("version {}, {} solver threads, {} io threads", SAP_VERSION, config.threads,
               config.io_threads);
  std::printf("listening on %s\n", (*server)->address().c_str());
  std::fflush(stdout);

  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("{}: finishing the calls that run, for at most {} s", strsignal(signal),
               config.drain_timeout_s);
  (*server)->Drain(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(config.drain_timeout_s)));
  spdlog::info("done");
  return EXIT_SUCCESS;
}
