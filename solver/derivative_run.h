// The derivatives of a solve: each island differentiated as a task, and the sums over islands.
#pragma once

#include "solver/solve_run.h"

namespace sap {

class DerivativeRun {
 public:
  // Requires that a SolveRun with the same state and solution has solved the problem, after
  // Prepare(/*factors_all=*/true).
  DerivativeRun(const ContactProblem& problem, const SolverOptions& options,
                const DerivativeRequest& request, const StopToken& stop, SolverState* state,
                ContactSolution* solution, Derivatives* derivatives)
      : problem_(problem),
        options_(options),
        request_(request),
        stop_(stop),
        state_(*state),
        solution_(*solution),
        derivatives_(*derivatives) {}

  void DifferentiateIslands();

 private:
  void DifferentiateIslandOf(int task, int island);

  const ContactProblem& problem_;
  const SolverOptions& options_;
  const DerivativeRequest& request_;
  const StopToken& stop_;
  SolverState& state_;
  ContactSolution& solution_;
  Derivatives& derivatives_;
};

}  // namespace sap
