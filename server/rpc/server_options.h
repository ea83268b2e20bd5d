// Options that both gRPC servers of the process have: that of the service and that of operators.
#pragma once

#include <grpcpp/grpcpp.h>

namespace sap {

// No address that another server uses; no decompression; a fixed flow-control window.
void SetCommonOptions(grpc::ServerBuilder* builder);

// Where tokens are required: gRPC's reflection service asks for none, and reads messages of any
// length.
void RemoveReflection(grpc::ServerBuilder* builder);

}  // namespace sap
