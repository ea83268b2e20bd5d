// Dependencies of the solver service's calls; all outlive the calls.
#pragma once

#include "server/auth/authenticator.h"
#include "server/ops/call_observer.h"
#include "server/rpc/in_flight_calls.h"
#include "server/rpc/message_transfers.h"
#include "server/rpc/rejection_rate_limiter.h"
#include "server/service/request_handler.h"

namespace sap {

struct ServiceContext {
  RequestHandler* handler;
  InFlightCalls* in_flight_calls;
  const Authenticator* authenticator;
  const CallObserver* observer;
  RejectionRateLimiter* rejection_limiter;
  MessageTransfers* transfers;
};

}  // namespace sap
