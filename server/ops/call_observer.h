// Reports the start and end of calls to the metrics and the log. Both may be null.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/ops/call_log.h"
#include "server/ops/request_id.h"
#include "server/scheduling/client_account.h"
#include "server/service/memory_guard.h"
#include "server/service/metrics.h"

namespace sap {

// Thread-safe.
class CallObserver {
 public:
  CallObserver(Metrics* metrics, CallLog* log) : metrics_(metrics), log_(log) {}

  void Started(Method method) const {
    if (metrics_ != nullptr) metrics_->CallStarted(method);
  }

  // The account is null if the call was not authenticated.
  void Ended(Method method, const grpc::Status& status, double duration_s,
             const grpc::ServerContext& context, RequestId* id, const ClientAccount* account,
             int64_t request_bytes) const {
    if (metrics_ != nullptr) metrics_->CallEnded(method, status.error_code(), duration_s);
    if (log_ == nullptr || !log_->Wants(status.error_code(), duration_s)) return;
    Log(method, status.error_code(), status.error_message(), duration_s, context, id, account,
        static_cast<uint64_t>(request_bytes), std::nullopt);
  }

  // Logs a session step; steps are not calls in the metrics.
  template <typename Request>
  void StepEnded(int code, std::string_view message, double duration_s,
                 const grpc::ServerContext& context, RequestId* id, const ClientAccount* account,
                 const Request& request, uint64_t step_id) const {
    if (log_ == nullptr || !log_->Wants(code, duration_s)) return;
    Log(Method::kSolveSession, code, message, duration_s, context, id, account,
        request.ByteSizeLong(), step_id);
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
  void Log(Method method, int code, std::string_view message, double duration_s,
           const grpc::ServerContext& context, RequestId* id, const ClientAccount* account,
           uint64_t bytes, std::optional<uint64_t> step_id) const;

  Metrics* const metrics_;
  CallLog* const log_;
};

}  // namespace sap
