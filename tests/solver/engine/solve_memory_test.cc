// What a solve allocates stays below the bound that admission counts with, and is not far below it.
#include "solver/engine/solve_memory.h"

#include <gtest/gtest.h>

#include "solver/engine/solve_task.h"
#include "solver/sharded_problem.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/memory_scenes.h"

namespace sap::test {
namespace {

struct Measured {
  int64_t peak{0};
  int64_t factors{0};
  size_t islands{0};
};

Measured Solve(const ContactProblemView& view, const SolverOptions& options, TaskArena* arena) {
  const int64_t before = LiveBytes();
  ForgetPeak();
  Measured measured;
  SolveTask task;
  EXPECT_TRUE(task.Read(view).has_value());
  Solver solver(arena);
  ContactSolution solution;
  EXPECT_TRUE(task.Solve(&solver, options, CallLimits(), SolveLimits(), &solution).has_value());
  measured.factors = static_cast<int64_t>(solver.factor_bytes());
  measured.islands = solution.islands.size();
  measured.peak = PeakBytes() - before;
  return measured;
}

void ExpectWithinBound(const SolverOptions& options) {
  TaskArena arena(2);
  for (const MemoryScene& scene : MemoryScenes()) {
    const ContactProblemView view = scene.problem.View();
    const int64_t bound = BytesOfSolve(view, options);
    for (TaskArena* const threads : {static_cast<TaskArena*>(nullptr), &arena}) {
      const Measured measured = Solve(view, options, threads);
      EXPECT_LE(measured.peak - measured.factors, bound) << scene.name;
      // What nothing touches is in no island, and its bound is that of what is.
      if (measured.islands == 0) continue;
      // The layout of a scene in shards is never in memory as a whole.
      if (ShardedProblem().Read(view, {})) {
        EXPECT_LE(2 * (measured.peak - measured.factors), bound) << scene.name;
        continue;
      }
      EXPECT_GE(4 * (measured.peak - measured.factors), bound) << scene.name;
    }
  }
}

TEST(SolveMemoryTest, ASolveTakesAtMostTheBoundAndItsFactors) {
  ExpectWithinBound({.max_iterations = 3, .interior_point = InteriorPoint::kNever});
}
TEST(SolveMemoryTest, ExactFrictionTakesAtMostItsBound) {
  ExpectWithinBound({.max_iterations = 3, .coulomb = CoulombFriction()});
}
TEST(SolveMemoryTest, TheInteriorPointTakesAtMostItsBound) {
  ExpectWithinBound({.max_iterations = 3, .interior_point = InteriorPoint::kAlways});
}
// Any island may come to be handed over.
TEST(SolveMemoryTest, TheBoundByDefaultIsThatOfTheInteriorPoint) {
  for (const MemoryScene& scene : MemoryScenes()) {
    const ContactProblemView view = scene.problem.View();
    EXPECT_EQ(BytesOfSolve(view), BytesOfSolve(view, {.interior_point = InteriorPoint::kAlways}));
  }
}

// An index that no tree has, arrays that are too short: whatever comes from the wire.
TEST(SolveMemoryTest, AnInvalidProblemHasABoundToo) {
  ProblemArrays problem;
  problem.trees.dofs = {3, 1'000'000};
  problem.trees.dynamics_matrix.assign(100, 1);
  problem.contacts.tree_a = {0, -7, 5};
  problem.contacts.tree_b = {1};
  problem.rows.entries = {2, 4'000'000'000U};
  problem.rows.velocity_index = {0, 4'000'000'000U, 7};
  EXPECT_GT(BytesOfSolve(problem.View()), 0);
  EXPECT_LT(BytesOfSolve(problem.View()), 1 << 20);
  problem.bodies.mass.assign(1000, 1);
  problem.rows.velocity_index = {0, 1'000'003, 1'000'009};
  EXPECT_GT(BytesOfSolve(problem.View()), 1000 * 1000);
}

}  // namespace
}  // namespace sap::test
