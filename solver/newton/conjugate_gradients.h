// The Newton step of a large island by conjugate gradients, with a single-precision factor of H as
// preconditioner.
//
//   H dv = -grad l,   preconditioner (L L')^-1, L in single precision
//
// The factorization, most of the time of a large island, takes half as long in single precision;
// products with H and all sums are in double. One to three iterations reach kStepTolerance, far
// below what the outer Newton iteration can use. The factor can fail where the double one would not
// (sigma 1e-8, say); callers then fall back.
#pragma once

#include <vector>

#include "solver/newton/hessian.h"

namespace sap {

// Vectors of the iteration, over all islands. Storage only grows.
struct ConjugateVectors {
  std::vector<double> residual, preconditioned, direction, product;
  std::vector<double> slot_sums;  // partial sums by chunks of slots

  void Resize(const ConstraintGraph& graph);
};

// Solves into step->v. kNotPositiveDefinite where the factor failed or the iteration did not get
// there in a few iterations.
StepStatus SolvePreconditionedStep(const IslandView& view, const Hessian& hessian,
                                   const EliminationPlan& plan, const StopToken& stop,
                                   const SapData& data, BlockCholesky<float>* cholesky,
                                   ConjugateVectors* vectors, SapStep* step);

}  // namespace sap
