// Reports the start and end of calls to the metrics, the log and the traces. Each may be null.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/ops/call_log.h"
#include "server/ops/request_id.h"
#include "server/ops/trace_exporter.h"
#include "server/scheduling/client_account.h"
#include "server/service/memory_guard.h"
#include "server/service/metrics.h"

namespace sap {

// Thread-safe.
class CallObserver {
 public:
  CallObserver(Metrics* metrics, CallLog* log, TraceExporter* traces = nullptr)
      : metrics_(metrics), log_(log), traces_(traces) {}

  // The trace of a call that its client samples; null: it is not traced.
  std::unique_ptr<CallTrace> TraceOf(const grpc::ServerContext& context) const;

  void Started(Method method) const {
    if (metrics_ != nullptr) metrics_->CallStarted(method);
  }

  // A call, or a step of a session; steps are not calls in the metrics.
  struct End {
    Method method;
    int code;
    std::string_view message;
    double duration_s;
    const grpc::ServerContext* context;
    RequestId* id;
    const ClientAccount* account;  // null: it was not authenticated
    const CallTrace* trace;        // null: it is not traced
  };

  void CallEnded(const End& end, int64_t request_bytes) const {
    if (metrics_ != nullptr) metrics_->CallEnded(end.method, end.code, end.duration_s);
    const bool is_logged = IsLogged(end);
    if (!is_logged && end.trace == nullptr) return;
    Report(end, is_logged, static_cast<uint64_t>(request_bytes), std::nullopt);
  }

  template <typename Request>
  void StepEnded(const End& end, const Request& request, uint64_t step_id) const {
    const bool is_logged = IsLogged(end);
    if (!is_logged && end.trace == nullptr) return;
    Report(end, is_logged, request.ByteSizeLong(), step_id);
  }

  // Periodic work: the log lines that a rate limit suppressed are reported as a number.
  void Sweep() const {
    if (log_ != nullptr) log_->ReportSuppressed();
  }

  // New calls are refused while memory is short, or accepted again.
  void MemoryChanged(MemoryGuard::Change change) const {
    if (log_ == nullptr || change == MemoryGuard::Change::kNone) return;
    const bool is_short = change == MemoryGuard::Change::kShort;
    log_->Message(is_short ? LogLevel::kError : LogLevel::kWarning,
                  is_short ? "memory is nearly used up: new calls are refused (SERVER_MEMORY)"
                           : "memory is available again: new calls are accepted");
  }

  void SessionExpired() const {
    if (metrics_ != nullptr) metrics_->sessions_expired.Add();
  }

  void WatchRefused() const {
    if (metrics_ != nullptr) metrics_->watches_refused.Add();
  }
  void WatchesOpen(int count) const {
    if (metrics_ != nullptr) metrics_->watches.store(count, std::memory_order_relaxed);
  }
  void ReadsInProgress(int waiting, int slow) const {
    if (metrics_ == nullptr) return;
    metrics_->reads_waiting.store(waiting, std::memory_order_relaxed);
    metrics_->reads_slow.store(slow, std::memory_order_relaxed);
  }

 private:
  // Once per call: it takes one of the lines of its code.
  bool IsLogged(const End& end) const {
    return log_ != nullptr && log_->Wants(end.code, end.duration_s);
  }
  void Report(const End& end, bool is_logged, uint64_t bytes,
              std::optional<uint64_t> step_id) const;

  Metrics* const metrics_;
  CallLog* const log_;
  TraceExporter* const traces_;
};

}  // namespace sap
