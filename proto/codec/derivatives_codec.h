// The derivatives of a problem: from the request to what the engine takes, and from its answer to
// the response.
#pragma once

#include "proto/codec/wanted_inputs.h"
#include "sap/v1/solver_service.pb.h"
#include "solver/engine/derivatives_request.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/derivatives.h"

namespace sap {

// The views are valid while the message exists unchanged. Nothing is checked.
DerivativesRequest DecodeDerivatives(const v1::DifferentiateRequest& message);

// Fills the response, except the solution, with the derivatives of the problem that was read from
// the view. Frees each gradient once it is encoded.
void EncodeDerivatives(const ContactProblemView& view, const ContactProblem& problem,
                       const WantedInputs& wanted, Derivatives* derivatives,
                       v1::DifferentiateResponse* response);

}  // namespace sap
