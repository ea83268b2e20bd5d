// JSON log lines for operators: slow and failed calls, and server events. A separate thread writes
// them; if it falls behind, the oldest lines are dropped and no call waits.
//
// A line never contains problems, tokens, or headers other than the request id and the trace
// context.
#pragma once

#include <spdlog/logger.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "server/engine/metrics.h"
#include "server/ops/log_file.h"
#include "server/server_config.h"

namespace sap {

// Log record of a call or of one session step.
struct CallSummary {
  Method method;
  int code{0};
  std::string_view message{};
  double duration_s{0};
  std::string_view client{};
  std::string_view request_id{};   // see request_id.h
  std::string_view traceparent{};  // header traceparent (W3C trace context); may be empty
  uint64_t request_bytes{0};
  std::optional<uint64_t> step_id{};
};

// Thread-safe.
class CallLog {
 public:
  // Fails with an error message if the file cannot be opened.
  static tl::expected<std::unique_ptr<CallLog>, std::string> Open(const LogConfig& config);
  ~CallLog();

  // Opens the log file anew under its name, after log rotation has renamed it. Returns an error
  // message, and writes on to the old file, if that fails; otherwise an empty string.
  std::string Reopen();

  void SetLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }

  void Message(LogLevel level, const std::string& text);

  // Whether the level selects such a call; check it before building a summary.
  bool Wants(int code, double duration_s) const;
  void Call(const CallSummary& call);

 private:
  CallLog(const LogConfig& config, std::shared_ptr<LogFile> file,
          std::shared_ptr<spdlog::logger> logger);

  const double slow_call_s_;
  std::atomic<LogLevel> level_;
  const std::shared_ptr<LogFile> file_;  // null: standard error
  const std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace sap
