// Routes the log lines of gRPC itself to the JSON log. By default gRPC writes them to standard
// error as plain text, at a rate that clients control.
//
// One of them is an event: gRPC 1.51 stops listening for good when accept() fails once, as it does
// without file descriptors, and tells that in its log alone.
#pragma once

#include <functional>

#include "server/ops/call_log.h"

namespace sap {

// At most one exists in a process, which gRPC logs to while it exists.
class GrpcLog {
 public:
  // The log must outlive this object. `deaf` is called, on any thread and maybe several times, when
  // the process no longer accepts connections at one of its addresses; it must not log.
  GrpcLog(CallLog* log, std::function<void()> deaf);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace sap
