#include "server/ops/grpc_log.h"

#include <grpc/support/log.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

namespace sap {
namespace {

// gRPC takes a plain function, and may call it until the process ends.
std::mutex log_mutex;
CallLog* current_log = nullptr;
std::function<void()> current_deaf;

// The line of gRPC's src/core/lib/iomgr/tcp_server_posix.cc that precedes the end of a listener.
bool StopsListening(const std::string& message) { return message.starts_with("Failed accept"); }

// Malformed input of clients is an error to gRPC, but nothing that needs an operator.
LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      break;
  }
  return LogLevel::kWarning;
}

void Log(gpr_log_func_args* line) {
  const std::lock_guard lock(log_mutex);
  if (current_log == nullptr) return;
  if (StopsListening(line->message)) current_deaf();
  current_log->LibraryMessage(
      LevelOf(line->severity),
      "gRPC: " + std::filesystem::path(line->file).filename().string() + ": " + line->message);
}

}  // namespace

GrpcLog::GrpcLog(CallLog* log, std::function<void()> deaf) {
  const std::lock_guard lock(log_mutex);
  current_log = log;
  current_deaf = std::move(deaf);
  gpr_set_log_function(Log);
}

GrpcLog::~GrpcLog() {
  const std::lock_guard lock(log_mutex);
  current_log = nullptr;
  gpr_set_log_function(nullptr);
}

}  // namespace sap
