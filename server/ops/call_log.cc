#include "server/ops/call_log.h"

#include <grpc/status.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace sap {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kOk = 0;
constexpr int kCancelled = 1;
constexpr int kUnknown = 2;
// Rate of the lines of one budget, and their number at once: at most some 300 MB a day.
constexpr std::chrono::milliseconds kLineInterval{100};
constexpr int kLinesAtOnce = 100;
// Text from clients is truncated to this length in bytes.
constexpr size_t kLongestText = 256;

const char* Name(LogLevel level) {
  constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<int>(level)];
}

// Whether an operator may have to act; other failures are those of clients.
bool IsFaultOfServer(int code) {
  constexpr std::array<int, 6> kFaults{GRPC_STATUS_UNKNOWN,   GRPC_STATUS_DEADLINE_EXCEEDED,
                                       GRPC_STATUS_INTERNAL,  GRPC_STATUS_RESOURCE_EXHAUSTED,
                                       GRPC_STATUS_DATA_LOSS, GRPC_STATUS_UNAVAILABLE};
  return std::ranges::find(kFaults, code) != kFaults.end();
}

std::string Cut(std::string_view text) { return std::string(text.substr(0, kLongestText)); }

// Invalid UTF-8 is replaced, not rejected.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

// "2026-01-31T23:59:59.123456Z"
std::string Now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since_epoch = now.time_since_epoch();
  const long micros =
      std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count() % 1'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 64> text;
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + length, text.size() - length, ".%06ldZ", micros);
  return text.data();
}

std::string MessageLine(LogLevel level, const std::string& text) {
  return Line({{"time", Now()}, {"level", Name(level)}, {"message", text}});
}

}  // namespace

tl::expected<std::unique_ptr<CallLog>, std::string> CallLog::Open(const LogConfig& config) {
  auto writer = LogWriter::Open(config.file);
  if (!writer) return tl::unexpected(writer.error());
  return std::unique_ptr<CallLog>(new CallLog(config, std::move(*writer)));
}

CallLog::CallLog(const LogConfig& config, std::unique_ptr<LogWriter> writer)
    : slow_call_s_(config.slow_call_s),
      level_(config.level),
      to_file_(!config.file.empty()),
      writer_(std::move(writer)) {}

CallLog::~CallLog() { ReportSuppressed(); }

bool LineBudget::Take(Clock::time_point now) {
  const Clock::time_point due =
      std::max(last_due_, now - kLinesAtOnce * kLineInterval) + kLineInterval;
  if (due > now) {
    ++suppressed_;
    return false;
  }
  last_due_ = due;
  return true;
}

void CallLog::Reopen() {
  if (!to_file_) return;
  const bool tells_success = LogLevel::kInfo >= level_.load(std::memory_order_relaxed);
  writer_->Reopen([tells_success](const std::string& error) -> std::string {
    if (!error.empty())
      return MessageLine(LogLevel::kError, error + "; the old file is written on");
    return tells_success ? MessageLine(LogLevel::kInfo, "log file reopened") : "";
  });
}

void CallLog::Message(LogLevel level, const std::string& text) {
  if (level >= level_.load(std::memory_order_relaxed)) writer_->Write(MessageLine(level, text));
}

void CallLog::LibraryMessage(LogLevel level, const std::string& text) {
  if (level >= level_.load(std::memory_order_relaxed) && TakeLine(kLibrary)) {
    Message(level, Cut(text));
  }
}

bool CallLog::TakeLine(int budget) {
  const std::lock_guard lock(mutex_);
  return budgets_[budget].Take(LineBudget::Clock::now());
}

void CallLog::ReportSuppressed() {
  for (int i = 0; i <= kLibrary; ++i) {
    std::unique_lock lock(mutex_);
    const uint64_t lines = budgets_[i].TakeSuppressed();
    lock.unlock();
    if (lines == 0) continue;
    const std::string whose =
        i == kLibrary ? "lines of gRPC" : std::string("calls with code ") + NameOfCode(i);
    Message(LogLevel::kWarning, std::to_string(lines) + " more " + whose + " suppressed");
  }
  if (const uint64_t dropped = writer_->TakeDropped(); dropped > 0) {
    Message(LogLevel::kWarning,
            std::to_string(dropped) + " lines dropped: they came faster than they were written");
  }
}

bool CallLog::Wants(int code, double duration_s) {
  if (!Selects(code, duration_s)) return false;
  const bool failed = code != kOk && code != kCancelled;
  return !failed || TakeLine(code >= 0 && code < kNumCodes ? code : kUnknown);
}

bool CallLog::Selects(int code, double duration_s) const {
  switch (level_.load(std::memory_order_relaxed)) {
    case LogLevel::kDebug:
      return true;
    case LogLevel::kInfo:
      return (code != kOk && code != kCancelled) || duration_s >= slow_call_s_;
    case LogLevel::kWarning:
      return IsFaultOfServer(code);
    case LogLevel::kError:
      return false;
  }
  return false;
}

void CallLog::Call(const CallSummary& call) {
  Json line{{"time", Now()},
            {"level", IsFaultOfServer(call.code) ? "warning" : "info"},
            {"method", sap::Name(call.method)},
            {"code", NameOfCode(call.code)},
            {"duration_ms", std::round(call.duration_s * 1e6) / 1e3},
            {"client", Cut(call.client)},
            {"request_bytes", call.request_bytes}};
  if (!call.message.empty()) line["message"] = Cut(call.message);
  if (!call.request_id.empty()) line["request_id"] = Cut(call.request_id);
  if (!call.traceparent.empty()) line["traceparent"] = Cut(call.traceparent);
  if (call.step_id) line["step_id"] = *call.step_id;
  writer_->Write(Line(line));
}

}  // namespace sap
