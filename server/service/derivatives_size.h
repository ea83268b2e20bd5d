// Limits on the memory of the derivatives of a problem and of their answer.
#pragma once

#include <cstdint>
#include <tl/expected.hpp>

#include "sap/v1/solver_service.pb.h"
#include "server/server_config.h"
#include "server/service_error.h"

namespace sap {

// Bounds on the memory of the derivatives of a problem, from the counts of its message.
struct DerivativesSize {
  int64_t answer_bytes{0};   // message, solution included
  int64_t working_bytes{0};  // derivatives with respect to all inputs, wanted or not
};

// The size, or why a server with these limits does not compute so much: INVALID_ARGUMENT,
// ANSWER_BYTES, SOLVE_MEMORY. Allocates nothing of it; the problem need not be valid.
tl::expected<DerivativesSize, ServiceError> CheckSize(const v1::DifferentiateRequest& request,
                                                      const ServerConfig& config);

// RESOURCE_EXHAUSTED if an answer of this size is larger than the largest message.
ServiceStatus CheckAnswerBytes(int64_t bytes, const ServerConfig& config);

}  // namespace sap
