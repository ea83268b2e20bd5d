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
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "solver/differentiate.h"
#include "solver/parallel/stop_token.h"
#include "solver/parallel/task_arena.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/solver_options.h"

namespace sap {

class SharedIslands;
class ShardedProblem;

// A problem whose factorization is larger than SolverOptions::max_factor_bytes.
struct MemoryLimitExceeded {
  size_t needed_bytes;
  size_t allowed_bytes;

  std::string Message() const;
};

// Workspaces and elimination plans of one stream of problems. Not thread-safe: one call at a time
// per object; as many objects as there are streams. A problem of a pattern seen before allocates
// nothing but scratch for trees of more than 512 degrees of freedom.
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
  TaskArena* arena() const;

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

  // Solves a scene in shards, each of which is read, laid out, solved and answered as one task: the
  // bits are those of the whole. `guess`: of all velocities, in place of the problem's own; or
  // empty. False if a value of the problem is refused, or lacks that the options need: a
  // ContactProblem tells which. *solution means nothing then, nor after a cancellation. `shared`:
  // islands of the batch of the problem, which then has no guess; null: there is none.
  tl::expected<bool, MemoryLimitExceeded> Solve(const ShardedProblem& problem,
                                                std::span<const double> guess,
                                                const SolverOptions& options, const StopToken& stop,
                                                ContactSolution* solution,
                                                SharedIslands* shared = nullptr);

  // Solves as Solve does, polishes the velocity of each island that has a cotangent other than 0
  // (of all of them where there are directions) by a plain Newton step, and differentiates there:
  // one gradient for each cotangent, one tangent for each direction. *solution is that of the
  // polished velocity; iterations are those of the solve. An island without a cotangent keeps the
  // solution of the solve and has gradients of exactly 0, as islands have that no derivatives could
  // be computed for. The storage of *derivatives is reused.
  //
  // Next to a boundary between regions of a law the derivative of the side counts on which the
  // polished velocity lies; kink_margin tells how near that is. A tolerance of 1e-10 is small
  // enough for derivatives good to eight digits.
  //
  // Derivatives are those of the convex model. With options.coulomb there are none: they are 0, and
  // every status is kNumericalFailure.
  tl::expected<void, MemoryLimitExceeded> Differentiate(
      const ContactProblem& problem, const SolverOptions& options,
      std::span<const Cotangent> cotangents, std::span<const ProblemDifferential> directions,
      const DerivativeOptions& derivative_options, const StopToken& stop, ContactSolution* solution,
      Derivatives* derivatives);

  // Bytes held: workspaces, layouts, plans, factors.
  size_t storage_bytes() const;
  // Bytes held for factorizations alone.
  size_t factor_bytes() const;
  // Frees the plans of earlier problems: their patterns would be ordered again.
  void DropUnusedPlans();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Solves one problem on the calling thread with fresh workspaces, whatever memory it takes.
ContactSolution Solve(const ContactProblem& problem, const SolverOptions& options = {});

}  // namespace sap
