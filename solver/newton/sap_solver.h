// SAP for one island: Newton's method on the primal cost with exact line search.
//
//   H = A + J' G J,   H dv = -grad l,   alpha = argmin l(v + alpha dv),   v += alpha dv
//   until |D grad l| <= eps_a + eps_r max(|D A v|, |D J' gamma|),   D = diag(A)^-1/2
//
// [Castro et al. 2021, Algorithm 2]. The accelerated method changes G of kinked constraints by
// their dual directions (see the laws) and sweeps between the steps (see gauss_seidel.h); cost,
// gradient and the stopping test are the same.
#pragma once

#include "solver/newton/gmres.h"
#include "solver/newton/newton_step.h"
#include "solver/newton/sap_data.h"
#include "solver/newton/sweep_order.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"

namespace sap {

// Evaluates the iterate and all norms of the stopping test, including those of coupled trees.
IslandNorms EvaluateIterate(const IslandView& view, const SolverOptions& options,
                            const StopToken& stop, SapData* data, SapScratch* scratch);

// Residual, status, cost and certificates of the velocity that `data` was evaluated at by
// EvaluateIterate: kConverged if it meets the tolerance, else the status that the report has.
void ReportIterate(const IslandView& view, const SolverOptions& options, const IslandNorms& norms,
                   const StopToken& stop, SapData* data, SapScratch* scratch, IslandReport* report);

// Workspace of a solve, all islands. Storage only grows.
struct SapWorkspace {
  SapData data;
  SapStep step;
  SapScratch scratch;
  Hessian hessian;
  ConjugateVectors conjugate;
  std::vector<double> v_before;        // before the last Newton step, to go back to
  std::vector<double> v_before_sweep;  // and before the sweep after it; of a trial: to go back to
  // Only for exact Coulomb friction:
  std::vector<double> v_best;   // of least residual
  std::vector<double> v_round;  // before the last round, to go back to
  KrylovVectors krylov;

  void Resize(const ConstraintGraph& graph, bool coulomb = false);
  size_t storage_bytes() const {
    return StorageBytes(data, step, scratch, hessian, conjugate, v_before, v_before_sweep, v_best,
                        v_round, krylov);
  }
};

// The iterations of SolveIsland without cost, certificate and residual in the report. Goes on
// counting from the iterations of the report.
void IterateIsland(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                   const SweepOrder& sweep_order, const PlannedFactors& factorization,
                   SapWorkspace* workspace, IslandReport* report);

// Solves one island from workspace->data.v, where the best iterate is left. Never fails: the
// report, blank at first, tells what was reached. Cost and gap are in the unit of the problem. The
// arena serves large islands only and may be null.
void SolveIsland(const IslandView& view, const SolverOptions& options, const StopToken& stop,
                 const SweepOrder& sweep_order, const PlannedFactors& factorization,
                 SapWorkspace* workspace, IslandReport* report);

}  // namespace sap
