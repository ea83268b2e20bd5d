// The Newton step H dv = -grad l of one island, by the smallest factor of H that serves: dense, or
// the block Cholesky along a plan, in single precision as a preconditioner.
#pragma once

#include "solver/cholesky/block_cholesky.h"
#include "solver/cholesky/elimination_plan.h"
#include "solver/newton/conjugate_gradients.h"
#include "solver/newton/hessian.h"
#include "solver/problem/solver_options.h"

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

// Factorizations of an island. Both are null for islands that are factored dense, and for larger
// ones without a plan, which are solved by Gauss-Seidel sweeps.
struct PlannedFactors {
  const EliminationPlan* plan{nullptr};
  FactorPair* factors{nullptr};
};

// Whether an island with this plan, or null, is factored in single precision, and in double
// precision only where that fails: the factorization, most of the time of a large island, takes
// half as long.
bool IsPreconditioned(const EliminationPlan* plan, const SolverOptions& options);

// The factor of the H of one island, or of a symmetric matrix M in its place.
class HessianFactor {
 public:
  // `single_precision`: of factors by a plan. Adds to *factorizations.
  HessianFactor(const IslandView& view, const PlannedFactors& factorization, bool single_precision,
                const StopToken& stop, int* factorizations)
      : view_(view),
        factorization_(factorization),
        stop_(stop),
        factorizations_(*factorizations),
        single_precision_(single_precision && factorization.plan != nullptr) {}

  // Factors the blocks of the island. Where single precision fails, as it can where double does not
  // (sigma 1e-8, say), double takes its place from then on.
  StepStatus Factor(const Hessian& hessian);

  // z := M^-1 r; they may be the same. False if it was stopped.
  bool Solve(const std::vector<double>& r, std::vector<double>* z) const;

  // x := H^-1 x for an island of one tree of six dofs, of which nothing is kept.
  StepStatus FactorAndSolve(const Hessian& hessian, SixDofs n, double* x);

  bool single_precision() const { return single_precision_; }
  // From the next factorization on.
  void UseDoublePrecision() { single_precision_ = false; }
  // The next factorization keeps no part of the last one.
  void Forget();

 private:
  const IslandView& view_;
  const PlannedFactors& factorization_;
  const StopToken& stop_;
  int& factorizations_;
  bool single_precision_;
  SmallCholesky dense_;
};

// Factors H and solves into step->v: by the factor, or by conjugate gradients where it is in single
// precision. Where a few iterations of them do not suffice, H is factored in double precision from
// then on.
StepStatus SolveNewtonStep(const IslandView& view, const Hessian& hessian, const StopToken& stop,
                           const SapData& data, HessianFactor* factor, ConjugateVectors* vectors,
                           SapStep* step);

}  // namespace sap
