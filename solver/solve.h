// The public entry of the solver: a checked problem in, a certified solution out.
//
//   ContactProblem -> graph -> islands -> gathered model -> SAP per island -> scattered
//   ContactSolution
//
// Bits of the answer are a function of the problem, its guess and the options alone (for one binary
// and instruction set): not of threads, load, or what the same Solver solved before. What is kept
// between calls only saves recomputation.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"

namespace sap {

// A problem whose factorization is larger than SolverOptions::max_factor_bytes.
struct MemoryLimitExceeded {
  size_t needed_bytes;
  size_t allowed_bytes;

  std::string Message() const;
};

// Workspaces and elimination plans of one stream of problems. Not thread-safe: one call at a time
// per object; as many objects as there are streams. A problem of a pattern seen before allocates
// nothing.
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

  // Solves the problem into *solution, reusing its storage. Every island gets a status, and its
  // best iterate with a certificate, or the guess with none where it was cancelled. One bad island
  // never changes another. Ends at the deadline of the token: iterations end sooner than that by
  // the time that the answer takes.
  // The only error is that of a factorization larger than the options allow, which is found before
  // it is allocated; *solution means nothing then. std::bad_alloc passes through; the solver can be
  // used again after it.
  tl::expected<void, MemoryLimitExceeded> Solve(const ContactProblem& problem,
                                                const SolverOptions& options, const StopToken& stop,
                                                ContactSolution* solution);

  // Bytes held for factorizations.
  size_t factor_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Solves one problem on the calling thread with fresh workspaces, whatever memory it takes.
ContactSolution Solve(const ContactProblem& problem, const SolverOptions& options = {});

// Predicted time of a warm solve on one core [s], from the sizes of the islands: for scheduling and
// admission. Costs a search for the islands; allocates nothing for a size seen before.
double PredictedSolveTime(const ContactProblem& problem);

}  // namespace sap
