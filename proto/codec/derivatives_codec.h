// The derivatives of a problem: from the request to what the engine takes, and from its answer to
// the response.
#pragma once

#include "sap/v1/solver_service.pb.h"
#include "solver/engine/solve_task.h"

namespace sap {

// The views are valid while the message exists unchanged. Nothing is checked.
DerivativesRequest DecodeDerivatives(const v1::DifferentiateRequest& message);

// Fills the response, except the solution, with the derivatives of the problem of the task. Frees
// each gradient once it is encoded.
void EncodeDerivatives(const SolveTask& task, Derivatives* derivatives,
                       v1::DifferentiateResponse* response);

}  // namespace sap
