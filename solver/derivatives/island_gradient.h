// Reverse mode: dL/d(input) of one cotangent, for one island.
#pragma once

#include "solver/derivatives/derivative_scope.h"
#include "solver/derivatives/hessian_system.h"
#include "solver/problem/derivatives.h"

namespace sap {

// Adds dL/d(input) of one cotangent: dL/d(shared input) and, for the island, *gradient.
StepStatus AddGradient(const DerivativeScope& scope, const Cotangent& cotangent,
                       HessianSystem* system, SharedInputs* shared, Gradient* gradient);

}  // namespace sap
