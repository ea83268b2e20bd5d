// What a solve allocates stays below the bound that admission counts with, and is not far below it.
#include "solver/engine/solve_memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "solver/engine/solve_task.h"
#include "solver/run/sharded_problem.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/memory_scenes.h"
#include "tests/support/random_problem.h"

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

// Each body on the ground, with a row.
ProblemArrays BodiesWithRows(int count) {
  ProblemArrays scene = Heaps(1, count, 1);
  for (int i = 0; i < count; ++i) scene.AddRow({static_cast<uint32_t>(6 * i)}, {1.0});
  return scene;
}

void ExpectWithinBound(const SolverOptions& options) {
  TaskArena two(2), eight(8);
  for (const MemoryScene& scene : MemoryScenes()) {
    const ContactProblemView view = scene.problem.View();
    for (TaskArena* const arena : {static_cast<TaskArena*>(nullptr), &two, &eight}) {
      ShardedProblem shards;
      const bool in_shards = shards.Read(view, {});
      const int threads = arena != nullptr ? arena->num_threads() : 1;
      const int64_t bound =
          in_shards ? BytesOfSolve(shards, options, threads) : BytesOfSolve(view, options);
      const Measured measured = Solve(view, options, arena);
      EXPECT_LE(measured.peak - measured.factors, bound) << scene.name;
      // What nothing touches is in no island, and its bound is that of what is. The bound of shards
      // has room for the refusal of a value.
      if (measured.islands == 0 || in_shards) continue;
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

TEST(SolveMemoryTest, ShardsCountWithHalfOfTheWholeOrLess) {
  int scenes_in_shards = 0;
  for (const MemoryScene& scene : MemoryScenes()) {
    const ContactProblemView view = scene.problem.View();
    ShardedProblem shards;
    if (!shards.Read(view, {})) continue;
    ++scenes_in_shards;
    EXPECT_LE(2 * BytesOfSolve(shards, {}, /*threads=*/2), BytesOfSolve(view)) << scene.name;
  }
  EXPECT_EQ(scenes_in_shards, 4);
}

// Its last value is found at fault by a shard, then the scene is read as a whole.
TEST(SolveMemoryTest, ARefusedSceneInShardsTakesAtMostItsBound) {
  ProblemArrays heaps = Heaps(1, 400, 5), ground = BodiesWithRows(2000);
  heaps.body_contacts.normal.back() = 0.5;
  ground.rows.coefficient.back() = std::numeric_limits<double>::infinity();
  for (const ProblemArrays& scene : {heaps, ground}) {
    for (const int threads : {1, 2, 8}) {
      TaskArena arena(threads);
      ShardedProblem shards;
      ASSERT_TRUE(shards.Read(scene.View(), {}));
      const int64_t bound = BytesOfSolve(shards, {}, threads);
      const int64_t before = LiveBytes();
      ForgetPeak();
      SolveTask task;
      ASSERT_TRUE(task.Read(scene.View()).has_value());
      Solver solver(&arena);
      ContactSolution solution;
      EXPECT_FALSE(task.Solve(&solver, {}, CallLimits(), SolveLimits(), &solution).has_value());
      const auto factors = static_cast<int64_t>(solver.factor_bytes());
      EXPECT_LE(PeakBytes() - before - factors, bound);
      EXPECT_GE(4 * (PeakBytes() - before - factors), bound);
    }
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
