// Requests as the bytes that gRPC sends. Those that carry problems are made from the arrays of the
// problems by one copy, without a message between. Internal.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <optional>
#include <span>

#include "client/cpp/client.h"
#include "sap/v1/solver_service.pb.h"

namespace sap::client {

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message);

// A SolveRequest.
grpc::ByteBuffer SolveRequestBytes(const ContactProblemView& problem,
                                   const v1::SolveOptions& options);

// A SolveBatchRequest, or a StreamBatchRequest, which has the same fields.
grpc::ByteBuffer BatchRequestBytes(std::span<const ContactProblemView> problems,
                                   const v1::SolveOptions& options);

// A SolveSessionRequest with a step, whose options may be absent.
grpc::ByteBuffer StepRequestBytes(uint64_t step_id, const ContactProblemView& problem,
                                  const std::optional<v1::SolveOptions>& options);

// The message of such bytes.
v1::SolveSessionRequest ParseStep(const grpc::ByteBuffer& step);

}  // namespace sap::client
