#include "server/ops/call_observer.h"

namespace sap {
void CallObserver::Log(Method method, int code, std::string_view message, double duration_s,
                       const grpc::ServerContext& context, RequestId* id,
                       const ClientAccount* account, uint64_t bytes,
                       std::optional<uint64_t> step_id) const {
  log_->Call({.method = method,
              .code = code,
              .message = message,
              .duration_s = duration_s,
              .client = account == nullptr ? std::string_view() : account->name(),
              .request_id = id->Of(context),
              .traceparent = HeaderOf(context, "traceparent"),
              .request_bytes = bytes,
              .step_id = step_id});
}

}  // namespace sap
