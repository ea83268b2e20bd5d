// The public entry of the solver: a checked problem in, a certified solution out.
//
//   ContactProblem -> graph -> islands -> gathered model -> SAP per island -> scattered
//   ContactSolution
//
// Bits of the answer are a function of the problem, its guess and the options alone (for one binary
// and instruction set): not of threads, load, or what the same Solver solved before. What is kept
// between calls only saves recomputation.
#pragma once

#include <memory>

#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"

namespace sap {

// Workspaces and elimination plans of one stream of problems. Not thread-safe: one call at a time
// per object; as many objects as there are streams. Storage only grows: a problem of a pattern seen
// before allocates nothing.
class Solver {
 public:
  // Islands, and the parts of large islands, are solved concurrently in the arena, which must
  // outlive the solver. Null: all on the calling thread.
  explicit Solver(TaskArena* arena);
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  // Solves in another arena, or none, from the next call on: the answers are the same.
  void UseArena(TaskArena* arena);

  // Solves the problem into *solution, reusing its storage. Always answers: every island has a
  // status, and its best iterate with a certificate, or the guess with none where it was cancelled.
  // One bad island never changes another. Ends at the deadline of the token, which is met by ending
  // iterations sooner than that by what the answer takes.
  void Solve(const ContactProblem& problem, const SolverOptions& options, const StopToken& stop,
             ContactSolution* solution);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One-off convenience: solves on the calling thread with fresh workspaces.
ContactSolution Solve(const ContactProblem& problem, const SolverOptions& options = {});

// Predicted time of a warm solve on one core [s], from the sizes of the islands: for scheduling and
// admission. Costs a search for the islands; allocates nothing for a size seen before.
double PredictedSolveTime(const ContactProblem& problem);

}  // namespace sap
