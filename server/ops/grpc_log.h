// Routes the log lines of gRPC itself to the JSON log. By default gRPC writes them to standard
// error as plain text, at a rate that clients control.
#pragma once

#include "server/ops/call_log.h"

namespace sap {

// At most one exists in a process, which gRPC logs to while it exists.
class GrpcLog {
 public:
  // The log must outlive this object.
  explicit GrpcLog(CallLog* log);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace sap
