// MuJoCo's constraint stage, mj_fwdConstraint, by this solver.
//
//   min_a  1/2 |a - a_smooth|_M^2 + s(J a - a_ref)
//
// in the unknown dt a = v - v_0. Only the difference to v_0 enters the problem, and without v_0 the
// acceleration is not a small difference of velocities.
#pragma once

#include <algorithm>
#include <cstdint>

#include "client/mujoco/fields.h"
#include "client/mujoco/problem_buffers.h"
#include "client/mujoco/python_calls.h"
#include "client/mujoco/solver_choice.h"
#include "client/mujoco/stage_outputs.h"
#include "solver/engine/engine.h"

namespace sap::mujoco {

bool IsSolved(const IslandReport& island);

sap_mujoco_certificate Certify(const ContactSolution& solution);

// To the sums and largest numbers of several steps.
template <typename Sums, typename Counts>
void AddCounts(Sums* to, const Counts& counts) {
  to->islands += counts.islands;
  to->unsolved += counts.unsolved;
  to->iterations = std::max(to->iterations, counts.iterations);
  to->bound = std::max(to->bound, counts.bound);
}

// Solves one state at a time, on the calling thread. Memory is kept for the next one, and never
// changes an answer.
class ConstraintStage {
 public:
  // Returns the number of islands, SAP_MUJOCO_SLOWER, or SAP_MUJOCO_MORE_ITERATIONS. Writes to the
  // state only if all islands are solved.
  //   flags, certificate   as for sap_mujoco_solve_constraints
  tl::expected<int64_t, EngineError> Run(const sap_mujoco_field* table, const void* model,
                                         void* data, int32_t flags,
                                         sap_mujoco_certificate* certificate);

 private:
  void Store(const Fields& fields, const Trees& trees, bool is_sparse);

  NewtonWork work_;
  SolverStatistics statistics_;
  ProblemBuffers problem_;
  SolveTask task_;
  Solver solver_{nullptr};
  ContactSolution solution_;
};

}  // namespace sap::mujoco
