// The Newton step H dv = -grad l of one island, by the smallest method that serves: dense, by the
// block Cholesky along a plan, or by conjugate gradients with that factor in single precision.
#pragma once

#include "solver/cholesky/block_cholesky.h"
#include "solver/cholesky/elimination_plan.h"
#include "solver/newton/conjugate_gradients.h"
#include "solver/newton/hessian.h"

namespace sap {

// The block factors of one large island; only what is used takes storage.
struct FactorPair {
  BlockCholesky<double> exact;
  BlockCholesky<float> preconditioner;

  size_t storage_bytes() const { return exact.storage_bytes() + preconditioner.storage_bytes(); }
  // Before another matrix: no part of either is kept.
  void Forget() {
    exact.Forget();
    preconditioner.Forget();
  }
};

// What an island is factored with. Both are null for islands that are factored dense, and for
// larger ones without a plan, which are solved by Gauss-Seidel sweeps.
struct PlannedFactors {
  const EliminationPlan* plan{nullptr};
  FactorPair* factors{nullptr};
};

// Whether an island with this plan is factored in single precision, and in double precision only
// where that fails.
bool IsPreconditioned(const EliminationPlan& plan, const SolverOptions& options);

// Solves into step->v, dense (IsDense).
StepStatus SolveDenseStep(const IslandView& view, const Hessian& hessian, const SapData& data,
                          SapStep* step);

// Solves into step->v by the block Cholesky.
StepStatus SolveSparseStep(const IslandView& view, const Hessian& hessian,
                           const EliminationPlan& plan, const StopToken& stop, const SapData& data,
                           BlockCholesky<double>* cholesky, SapStep* step);

// Solves into step->v by conjugate gradients. The factorization, most of the time of a large
// island, takes half as long in single precision. kNotPositiveDefinite where the factor failed,
// which it can where the double one would not (sigma 1e-8, say), or where a few iterations did not
// suffice.
StepStatus SolvePreconditionedStep(const IslandView& view, const Hessian& hessian,
                                   const EliminationPlan& plan, const StopToken& stop,
                                   const SapData& data, BlockCholesky<float>* cholesky,
                                   ConjugateVectors* vectors, SapStep* step);

}  // namespace sap
