// Forward mode: d(output) along one direction of the problem, for one island.
#pragma once

#include "solver/derivatives/derivative_scope.h"
#include "solver/derivatives/hessian_system.h"
#include "solver/problem/derivatives.h"

namespace sap {

// d(output) of the island along one direction. Overwrites adjoint->pools[].dJ with its Jacobians.
StepStatus AddTangent(const DerivativeScope& scope, const ProblemDifferential& direction,
                      HessianSystem* system, double* cost, Tangent* tangent);

}  // namespace sap
