// The metrics for Prometheus, on an HTTP address of their own: GET /metrics. With the names that
// dashboards of gRPC services know; server/README.md lists them.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "server/engine/engine.h"
#include "server/engine/metrics.h"

namespace sap {

class MetricsEndpoint {
 public:
  // Address: HOST:PORT. Serves from its return on; the metrics and the engine must outlive it.
  // Certificate: whose time of expiry is told; may be empty.
  static tl::expected<std::unique_ptr<MetricsEndpoint>, std::string> Start(
      const std::string& address, const Metrics* metrics, Engine* engine,
      const std::string& certificate);

  // With the port that was found where 0 was asked for.
  const std::string& address() const { return address_; }

 private:
  MetricsEndpoint() = default;

  std::string address_;
  std::shared_ptr<prometheus::Collectable> families_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

// All families as they are now; for the endpoint, and for tests.
std::vector<prometheus::MetricFamily> CollectMetrics(const Metrics& metrics, Engine* engine,
                                                     const std::string& certificate);

}  // namespace sap
