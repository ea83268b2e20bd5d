// Parts that the calls of a service share, for tests that handle the events of completion queues
// themselves.
#pragma once

#include "server/rpc/service_context.h"
#include "server/service/metrics.h"

namespace sap::test {

struct ServiceParts {
  ServerConfig config;
  Metrics metrics;
  RequestHandler handler{config, nullptr, &metrics};
  InFlightCalls calls;
  Authenticator authenticator{&handler.admission(), nullptr};
  CallObserver observer{&metrics, nullptr};
  RejectionRateLimiter rejection_limiter{1};
  MessageTransfers transfers{config};
  LongMessages long_messages{0};
  ServiceContext context{&handler,           &calls,     &authenticator, &observer,
                         &rejection_limiter, &transfers, &long_messages};
};

}  // namespace sap::test
