#include "server/ops/call_log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sap {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kQueuedLines = 8192;
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

std::string Cut(std::string_view text) { return std::string(text.substr(0, kLongestText)); }

// Invalid UTF-8 is replaced, not rejected.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since_epoch = now.time_since_epoch();
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count() % 1'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, micros);
}

}  // namespace

tl::expected<std::unique_ptr<CallLog>, std::string> CallLog::Open(const LogConfig& config) {
  std::shared_ptr<LogFile> file;
  if (!config.file.empty()) {
    auto opened = LogFile::Open(config.file);
    if (!opened) return tl::unexpected(opened.error());
    file = std::move(*opened);
  }
  try {
    spdlog::sink_ptr sink = file;
    if (sink == nullptr) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    if (spdlog::thread_pool() == nullptr) spdlog::init_thread_pool(kQueuedLines, 1);
    auto logger = std::make_shared<spdlog::async_logger>(
        "sap-server", sink, spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest);
    logger->set_pattern("%v");
    // Write errors, such as a full disk, lose lines and have no other effect.
    logger->set_error_handler([](const std::string&) {});
    logger->flush_on(spdlog::level::info);
    return std::unique_ptr<CallLog>(new CallLog(config, std::move(file), std::move(logger)));
  } catch (const spdlog::spdlog_ex& error) {
    return tl::unexpected(std::string("cannot log: ") + error.what());
  }
}

CallLog::CallLog(const LogConfig& config, std::shared_ptr<LogFile> file,
                 std::shared_ptr<spdlog::logger> logger)
    : slow_call_s_(config.slow_call_s),
      level_(config.level),
      file_(std::move(file)),
      logger_(std::move(logger)) {}

CallLog::~CallLog() {
  ReportSuppressed();
  logger_->flush();
}

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

std::string CallLog::Reopen() { return file_ == nullptr ? "" : file_->Reopen(); }

void CallLog::Message(LogLevel level, const std::string& text) {
  if (level < level_.load(std::memory_order_relaxed)) return;
  logger_->info(Line({{"time", Now()}, {"level", Name(level)}, {"message", text}}));
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
      return code != kOk && code != kCancelled;
    case LogLevel::kError:
      return false;
  }
  return false;
}

void CallLog::Call(const CallSummary& call) {
  const bool failed = call.code != kOk && call.code != kCancelled;
  Json line{{"time", Now()},
            {"level", failed ? "warning" : "info"},
            {"method", sap::Name(call.method)},
            {"code", NameOfCode(call.code)},
            {"duration_ms", call.duration_s * 1e3},
            {"client", Cut(call.client)},
            {"request_bytes", call.request_bytes}};
  if (!call.message.empty()) line["message"] = Cut(call.message);
  if (!call.request_id.empty()) line["request_id"] = Cut(call.request_id);
  if (!call.traceparent.empty()) line["traceparent"] = Cut(call.traceparent);
  if (call.step_id) line["step_id"] = *call.step_id;
  logger_->info(Line(line));
}

}  // namespace sap
