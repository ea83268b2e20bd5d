// What every call of the solver's service needs to know; all outlives the calls.
#pragma once

#include "server/call_watch.h"
#include "server/callers.h"
#include "server/engine.h"
#include "server/open_calls.h"

namespace sap {

struct ServiceContext {
  Engine* engine;
  OpenCalls* open_calls;
  const Callers* callers;
  const CallWatch* watch;
};

}  // namespace sap
