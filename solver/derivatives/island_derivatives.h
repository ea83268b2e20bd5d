// Derivatives of the solution of one island. One plain Newton step polishes the velocity; with its
// factor, of H at the velocity before, HessianSystem solves for all cotangents and directions.
#pragma once

#include <span>

#include "solver/derivatives/derivative_scope.h"
#include "solver/newton/sap_solver.h"
#include "solver/problem/derivatives.h"

namespace sap {

// The derivatives that are asked of every island.
struct DerivativeRequest {
  std::span<const Cotangent> cotangents;
  std::span<const ProblemDifferential> directions;
  bool hold_delassus;
};

// Where the derivatives of one island go. Numbers of other islands are left alone.
struct IslandDerivatives {
  std::span<Gradient> gradients;   // zero before
  std::span<SharedInputs> shared;  // per cotangent
  std::span<Tangent> tangents;     // zero before
  std::span<double> costs;         // per direction
  double* kink_margin;
  IslandReport* report;  // what the solve has reached; updated to the polished velocity
};

// Differentiates the island at workspace->data, which scope.data is, and leaves the polished
// velocity there. An island without any cotangent is left as it is, unless there are directions.
AdjointStatus DifferentiateIsland(const DerivativeScope& scope, const SolverOptions& options,
                                  const DerivativeRequest& request,
                                  const PlannedFactors& factorization, SapWorkspace* workspace,
                                  IslandDerivatives* derivatives);

}  // namespace sap
