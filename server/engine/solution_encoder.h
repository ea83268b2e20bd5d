// From the solver's solution to the message that answers a call.
#pragma once

#include <google/protobuf/duration.pb.h>

#include "sap/v1/solution.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "server/engine/problem_decoder.h"
#include "server/service_error.h"
#include "solver/problem/contact_solution.h"

namespace sap {

// Fills the fields that the mask asks for, all but the timings of phases outside the solver.
void EncodeSolution(const ContactSolution& solution, const ResponseMask& mask,
                    v1::ContactSolution* message);

// Why a problem of a batch or a step of a session has no solution.
void EncodeFailure(const ServiceError& error, v1::Failure* message);

void SetDuration(double seconds, google::protobuf::Duration* message);

}  // namespace sap
