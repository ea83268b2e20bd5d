#include "server/ops/call_observer.h"

#include "server/ops/trace_parent.h"

namespace sap {
namespace {

constexpr const char* kTraceParent = "traceparent";

std::string_view NameOf(const ClientAccount* account) {
  return account == nullptr ? std::string_view() : account->name();
}

}  // namespace

std::unique_ptr<CallTrace> CallObserver::TraceOf(const grpc::ServerContext& context) const {
  if (traces_ == nullptr) return nullptr;
  const std::optional<TraceParent> parent = SampledParent(HeaderOf(context, kTraceParent));
  return parent ? std::make_unique<CallTrace>(*parent) : nullptr;
}

void CallObserver::Report(const End& end, bool is_logged, uint64_t bytes,
                          std::optional<uint64_t> step_id) const {
  const std::string_view request_id = end.id->Of(*end.context);
  if (end.trace != nullptr) {
    traces_->Add({.trace = end.trace,
                  .method = end.method,
                  .code = end.code,
                  .message = end.message,
                  .duration_s = end.duration_s,
                  .client = NameOf(end.account),
                  .request_id = request_id,
                  .request_bytes = bytes,
                  .step_id = step_id});
  }
  if (!is_logged) return;
  log_->Call({.method = end.method,
              .code = end.code,
              .message = end.message,
              .duration_s = end.duration_s,
              .client = NameOf(end.account),
              .request_id = request_id,
              .traceparent = HeaderOf(*end.context, kTraceParent),
              .request_bytes = bytes,
              .step_id = step_id});
}

}  // namespace sap
