// Per-call data from the transport: arrival time, deadline, cancellation flag and client account.
#pragma once

#include "server/scheduling/client_account.h"
#include "server/service_error.h"
#include "solver/engine/time_limit.h"

namespace sap {

class CallTrace;

struct CallContext : CallLimits {
  // The client's account, which must outlive the call; null: this process itself.
  ClientAccount* account{nullptr};
  // Receives the times of its phases, and must outlive the call; null: it is not traced.
  CallTrace* trace{nullptr};
};

}  // namespace sap
