// Encodes the solver's solution into the response message.
#pragma once

#include <google/protobuf/duration.pb.h>

#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "server/service/problem_decoder.h"
#include "server/service_error.h"
#include "solver/problem/contact_solution.h"

namespace sap {

// Fills the fields selected by the mask, except the timings of phases outside the solver.
void EncodeSolution(const ContactSolution& solution, const ResponseMask& mask,
                    v1::ContactSolution* message);

// Encodes the error of a batch problem or session step.
void EncodeFailure(const ServiceError& error, v1::Failure* message);

void SetDuration(double seconds, google::protobuf::Duration* message);

}  // namespace sap
