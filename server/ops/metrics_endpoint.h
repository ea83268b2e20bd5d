// Metrics and probes on an HTTP address of their own, plain and without authentication:
//
//   GET /metrics  for Prometheus. The call metrics have the usual names of gRPC services;
//                 server/README.md lists all
//   GET /live     200 while the process runs
//   GET /ready    200 while new calls are welcome, 503 before the start has completed and from the
//                 announcement of the shutdown on
#pragma once

#include <prometheus/metric_family.h>

#include <atomic>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "server/ops/http_server.h"
#include "server/service/metrics.h"
#include "server/service/request_handler.h"

namespace sap {

class MetricsEndpoint {
 public:
  // Serves from the return of this call on, not ready. Address: HOST:PORT. Metrics and handler must
  // outlive the endpoint. `certificate` is the file whose expiry time is exported; may be empty.
  static tl::expected<std::unique_ptr<MetricsEndpoint>, std::string> Start(
      const std::string& address, const Metrics* metrics, RequestHandler* handler,
      const std::string& certificate);

  // The address with the assigned port if port 0 was requested.
  const std::string& address() const { return address_; }

  void SetReady(bool ready) { ready_.store(ready, std::memory_order_relaxed); }

  // Whose connections are counted; once, when the server listens there.
  void SetServed(const std::string& address) {
    served_.store(std::make_shared<const std::string>(address));
  }

 private:
  MetricsEndpoint() = default;

  std::string address_;
  std::atomic<bool> ready_{false};
  std::atomic<std::shared_ptr<const std::string>> served_;
  std::unique_ptr<HttpServer> server_;
};

// Snapshot of all metric families. `served` is the listen address of the calls.
std::vector<prometheus::MetricFamily> CollectMetrics(const Metrics& metrics,
                                                     RequestHandler* handler,
                                                     const std::string& certificate,
                                                     const std::string& served);

}  // namespace sap
