// Prometheus endpoint: GET /metrics on its own HTTP address. The call metrics have the usual names
// of gRPC services; server/README.md lists all.
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
  // Serves from the return of this call on. Address: HOST:PORT. Metrics and engine must outlive the
  // endpoint. `accuracy_certificate` is the file whose expiry time is exported; may be empty.
  static tl::expected<std::unique_ptr<MetricsEndpoint>, std::string> Start(
      const std::string& address, const Metrics* metrics, Engine* engine,
      const std::string& certificate);

  // The address with the assigned port if port 0 was requested.
  const std::string& address() const { return address_; }

 private:
  MetricsEndpoint() = default;

  std::string address_;
  std::shared_ptr<prometheus::Collectable> families_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

// Snapshot of all metric families.
std::vector<prometheus::MetricFamily> CollectMetrics(const Metrics& metrics, Engine* engine,
                                                     const std::string& certificate);

}  // namespace sap
