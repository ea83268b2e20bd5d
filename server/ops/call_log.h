// JSON log lines for operators: slow and failed calls, and server events. A separate thread writes
// them; if it falls behind, the oldest lines are dropped and counted, and no call waits.
//
// Lines that clients can cause without limit have a rate: per status code of failed calls, and for
// the lines of gRPC itself. Those beyond it are counted and reported as one line.
//
// A line never contains problems, tokens, or headers other than the request id and the trace
// context.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "server/ops/log_writer.h"
#include "server/server_config.h"
#include "server/service/metrics.h"

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

// Token bucket of log lines. Not thread-safe.
class LineBudget {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether a line may be written now; otherwise it is counted.
  bool Take(Clock::time_point now);

  // The number of lines that were not written since the last call of this.
  uint64_t TakeSuppressed() { return std::exchange(suppressed_, 0); }

 private:
  // When the last line was or would have been due at the mean rate.
  Clock::time_point last_due_{Clock::time_point::min()};
  uint64_t suppressed_{0};
};

// Thread-safe.
class CallLog {
 public:
  // Fails with an error message if the file cannot be opened.
  static tl::expected<std::unique_ptr<CallLog>, std::string> Open(const LogConfig& config);
  // Waits for at most a second for lines that are not written yet.
  ~CallLog();

  // Lets the log file be opened again under its name, after log rotation has renamed it; without a
  // file it has no effect. A line tells the result.
  void Reopen();

  // Whether all lines so far are written within the time.
  bool Flush(std::chrono::milliseconds timeout) { return writer_->Flush(timeout); }

  // Number of lines that were lost because they were not written fast enough.
  uint64_t lines_dropped() const { return writer_->dropped(); }

  void SetLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }

  void Message(LogLevel level, const std::string& text);

  // A line of gRPC, as far as the rate allows.
  void LibraryMessage(LogLevel level, const std::string& text);

  // Whether the level selects such a call and, if it failed, the rate of its code allows a line.
  // Call it once per call, before building its summary.
  bool Wants(int code, double duration_s);
  void Call(const CallSummary& call);

  // Writes how many lines were suppressed since the last report, per code, and how many dropped;
  // call periodically.
  void ReportSuppressed();

 private:
  CallLog(const LogConfig& config, std::unique_ptr<LogWriter> writer);

  bool Selects(int code, double duration_s) const;
  bool TakeLine(int budget);

  // One budget per status code, and one for the lines of gRPC.
  static constexpr int kLibrary = kNumCodes;

  const double slow_call_s_;
  std::atomic<LogLevel> level_;
  const bool to_file_;
  const std::unique_ptr<LogWriter> writer_;

  std::mutex mutex_;
  std::array<LineBudget, kNumCodes + 1> budgets_;
};

}  // namespace sap
