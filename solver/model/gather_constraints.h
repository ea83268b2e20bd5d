// How a model is filled with the constraints of one island: Jacobians, regularization, laws.
#pragma once

#include "solver/model/sap_model.h"

namespace sap {

// Needs the trees of the island. False if a constant left the range of doubles. What is cancelled
// meanwhile is left half filled.
bool GatherConstraints(const ContactProblem& problem, const ConstraintGraph& graph, int island,
                       const StopToken& stop, TaskArena* arena, SapModel* model);

}  // namespace sap
