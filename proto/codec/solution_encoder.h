// Encodes the solver's solution into the response message.
#pragma once

#include "sap/v1/solution.pb.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solution_mask.h"

namespace sap {

// Fills the fields selected by the mask, except the timings of phases outside the solver.
void EncodeSolution(const ContactSolution& solution, const SolutionMask& mask,
                    v1::ContactSolution* message);

}  // namespace sap
