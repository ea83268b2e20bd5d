// Per-call data from the transport: arrival time, deadline, cancellation flag and client account.
#pragma once

#include "server/scheduling/client_account.h"
#include "server/service_error.h"
#include "solver/engine/time_limit.h"

namespace sap {

struct CallContext : CallLimits {
  // The client's account, which must outlive the call; null: this process itself.
  ClientAccount* account{nullptr};
};

}  // namespace sap
