// One problem from its arrays to its solution: checked, predicted, solved, differentiated.
//
//   request -> Read -> Solve -> solution, derivatives
//
// Read looks at the indices alone where a scene has many small islands, or a large one. Its values
// are checked in Solve, by the threads that solve it.
//
// It knows neither threads nor queues: the caller chooses the solver and its arena, by IsSmall.
#pragma once

#include <optional>
#include <vector>

#include "solver/engine/derivatives_request.h"
#include "solver/engine/engine_error.h"
#include "solver/engine/solve_request.h"
#include "solver/engine/time_limit.h"
#include "solver/parallel/storage_bytes.h"
#include "solver/problem/contact_problem.h"
#include "solver/problem/contact_solution.h"
#include "solver/problem/derivatives.h"
#include "solver/problem/named_velocities.h"
#include "solver/problem/solver_options.h"
#include "solver/run/sharded_problem.h"
#include "solver/solve.h"
#include "solver/split/island_sharing.h"

namespace sap {

// Reusable: a problem no larger than an earlier one allocates no memory.
class SolveTask {
 public:
  // Predicted time below which a problem is small: waking other threads would cost about as much.
  static constexpr double kSmall_s = 200e-6;

  // Reads a problem. Its arrays must live until it is answered, and so must `shared`.
  EngineStatus Read(const ContactProblemView& view, const ProblemLimits& limits = {},
                    SharedIslands* shared = nullptr);
  // Reads problem and derivatives of a request that at most `threads` threads will solve, and
  // checks its memory. The velocity of the derivatives becomes the guess.
  EngineStatus Read(SolveRequest request, const EngineLimits& limits, int threads);

  const ContactProblemView& view() const { return view_; }
  // The problem that is differentiated, checked.
  const ContactProblem& problem() const { return problem_; }
  // Inputs whose gradients are wanted.
  const InputSelection& wanted() const { return wanted_; }
  NamedTrees trees() const;
  int num_velocities() const { return trees().velocity_start.back(); }
  // Where the solve starts: that of the problem, or of StartFrom.
  std::vector<double> guess() const;

  // Trees and bodies without a guess start from their velocities there. Returns whether there are
  // any.
  bool StartFrom(const NamedVelocities& velocities);

  // Whether the problem is predicted to take less time than `below_s`. The prediction is for some
  // ten iterations; options that allow more than the default may use all of them, of which 10,000
  // take a thousand times as long.
  bool IsSmall(const SolverOptions& options, double below_s = kSmall_s) const {
    return options.max_iterations <= SolverOptions().max_iterations &&
           RelativeWork(options) * predicted_s_ < below_s;
  }

  // Solves the problem and differentiates it if that was asked for. An error if the call was
  // cancelled, its deadline passed, memory is short, or a value that Read left is refused.
  EngineStatus Solve(Solver* solver, const SolverOptions& options, const CallLimits& call,
                     const SolveLimits& limits, ContactSolution* solution,
                     Derivatives* derivatives = nullptr);

  // BytesOfSolve of the way by which the request that was read will be solved.
  int64_t solve_bytes() const { return solve_bytes_; }

  size_t storage_bytes() const {
    return StorageBytes(problem_, sharded_, sharing_, guess_, derivatives_);
  }
  // Frees what is kept for problems other than the last one, and is of no use to that.
  void DropUnusedPlans() { problem_.DropUnusedPlans(); }

 private:
  EngineStatus ReadWhole(TaskArena* arena);
  EngineStatus ReadRemainder();
  EngineStatus ReadDerivatives(DerivativesRequest request, const EngineLimits& limits);
  void AssignGuessOfProblem(std::vector<double>* guess) const;
  const ProblemLayout* LayoutOfWhole() const;
  EngineStatus CheckOptions(const SolverOptions& options) const;
  EngineStatus SolveShards(Solver* solver, const SolverOptions& options, const StopToken& stop,
                           ContactSolution* solution);
  EngineStatus SolveWhole(Solver* solver, const SolverOptions& options, const StopToken& stop,
                          ContactSolution* solution, Derivatives* derivatives);

  ContactProblemView view_;
  ProblemLimits limits_;
  bool in_shards_{false};  // or whole
  bool is_read_{false};    // problem_ is; else there is no more than the layout in sharded_
  ShardedProblem sharded_;
  SharedIslands* shared_{nullptr};  // of the batch; null: no batch, or it does not take part
  IslandSharing sharing_;           // where the problem is not in shards
  ContactProblem problem_;          // without what sharing_ found
  std::vector<double> guess_;       // of StartFrom; empty: that of the problem
  std::optional<DerivativesRequest> derivatives_;
  InputSelection wanted_;  // of the derivatives
  double predicted_s_{0};
  int64_t solve_bytes_{0};
};

}  // namespace sap
