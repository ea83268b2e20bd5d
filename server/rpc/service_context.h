// Dependencies of the solver service's calls; all outlive the calls.
#pragma once

#include "server/auth/authenticator.h"
#include "server/ops/call_observer.h"
#include "server/rpc/in_flight_calls.h"
#include "server/rpc/long_messages.h"
#include "server/rpc/message_transfers.h"
#include "server/rpc/rejection_rate_limiter.h"
#include "server/service/request_handler.h"
#include "server/worlds/world_handler.h"

namespace sap {

struct ServiceContext {
  RequestHandler* handler{nullptr};
  InFlightCalls* in_flight_calls{nullptr};
  const Authenticator* authenticator{nullptr};
  const CallObserver* observer{nullptr};
  RejectionRateLimiter* rejection_limiter{nullptr};  // delays of rejections
  MessageTransfers* transfers{nullptr};              // messages being received or sent
  LongMessages* long_messages{nullptr};              // null: all are parsed where they arrive
  WorldHandler* worlds{nullptr};                     // null: the server steps none
};

}  // namespace sap
