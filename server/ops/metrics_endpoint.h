// Metrics and probes on an HTTP address of their own, plain and without authentication:
//
//   GET /metrics  for Prometheus, at most a second old. The call metrics have the usual names of
//                 gRPC services; server/README.md lists all
//   GET /live     200 while the process runs, 503 once it accepts no more connections
//   GET /ready    200 while new calls are welcome, 503 before the start has completed and from the
//                 announcement of the shutdown on
#pragma once

#include <prometheus/metric_family.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "server/auth/bearer_tokens.h"
#include "server/auth/tls_credentials.h"
#include "server/ops/call_log.h"
#include "server/ops/http_server.h"
#include "server/ops/trace_exporter.h"
#include "server/service/metrics.h"
#include "server/service/request_handler.h"
#include "server/worlds/world_handler.h"

namespace sap {

// The objects that metrics are read from; all must outlive the endpoint.
struct MetricSources {
  const Metrics* metrics;
  RequestHandler* handler;
  const ServerCertificates* certificates{nullptr};  // null: plain text
  const BearerTokens* tokens{nullptr};              // null: no token file
  const CallLog* log{nullptr};
  const TraceExporter* traces{nullptr};  // null: no collector
  const WorldHandler* worlds{nullptr};   // null: the server steps none
};

class MetricsEndpoint {
 public:
  // Serves from the return of this call on, not ready. Address: HOST:PORT.
  static tl::expected<std::unique_ptr<MetricsEndpoint>, std::string> Start(
      const std::string& address, const MetricSources& sources);

  // The address with the assigned port if port 0 was requested.
  const std::string& address() const { return address_; }

  void SetReady(bool ready) { ready_.store(ready, std::memory_order_relaxed); }

  // The server accepts no more connections, and only a new process will.
  void SetDead() { live_.store(false, std::memory_order_relaxed); }

  // Whose connections are counted; once, when the server listens there.
  void SetServed(const std::string& address) {
    served_.store(std::make_shared<const std::string>(address));
  }

 private:
  MetricsEndpoint() = default;

  // Called on the thread of the HTTP server.
  HttpServer::Response Answer(const MetricSources& sources, std::string_view path);
  const std::string& Page(const MetricSources& sources);

  std::string address_;
  std::string page_;  // of /metrics
  std::chrono::steady_clock::time_point page_expiry_{};
  std::atomic<bool> live_{true};
  std::atomic<bool> ready_{false};
  std::atomic<std::shared_ptr<const std::string>> served_;
  std::unique_ptr<HttpServer> server_;
};

// Snapshot of all metric families. `served` is the listen address of the calls.
std::vector<prometheus::MetricFamily> CollectMetrics(const MetricSources& sources,
                                                     const std::string& served);

}  // namespace sap
