// What objects say that they keep is what they have allocated, for every kind of problem and solve:
// an array that an account leaves out is missing in the limits of a server.
#include "solver/parallel/storage_bytes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "solver/engine/solve_task.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/memory_scenes.h"
#include "tests/support/random_problem.h"
#include "tests/support/tree_parts.h"

namespace sap::test {
namespace {

// Small parts.
constexpr int64_t kConstant_bytes = 100'000;

// All that one stream of problems keeps.
struct Stream {
  SolveTask task;
  Solver solver{nullptr};
  ContactSolution solution;
  Derivatives derivatives;

  int64_t counted() const {
    return static_cast<int64_t>(StorageBytes(task, solver, solution)) +
           static_cast<int64_t>(sizeof(Stream));
  }

  void Solve(const ProblemArrays& problem, const SolverOptions& options,
             const DerivativesRequest* request = nullptr) {
    SolveRequest asked{problem.View()};
    if (request != nullptr) asked.derivatives = *request;
    ASSERT_TRUE(task.Read(std::move(asked), kInProcessLimits, 1).has_value());
    ASSERT_TRUE(task.Solve(&solver, options, CallLimits(), SolveLimits(), &solution,
                           request != nullptr ? &derivatives : nullptr)
                    .has_value());
    derivatives = {};
  }
};

// Calls solve(stream) and compares; once before, for the scratch that the thread keeps.
template <typename Solve>
void ExpectAllCounted(const std::string& name, const Solve& solve) {
  solve(std::make_unique<Stream>().get());
  const int64_t before = LiveBytes();
  const auto stream = std::make_unique<Stream>();
  solve(stream.get());
  const int64_t allocated = LiveBytes() - before;
  EXPECT_NEAR(static_cast<double>(stream->counted()), static_cast<double>(allocated),
              0.05 * static_cast<double>(allocated) + kConstant_bytes)
      << name;
}

SolverOptions FewIterations() { return {.max_iterations = 3}; }

// Bodies thrown together again at each step: patterns that do not come again.
ProblemArrays Moving(int step) { return RandomBodiesInContact(step, 100, 150); }

ProblemArrays ByLoadPath(ProblemArrays problem) {
  problem.regularization.rule = DelassusRule::kLoadPath;
  problem.bodies.initial_velocity.assign(6 * problem.bodies.mass.size(), 0.0);
  return problem;
}

TEST(StorageBytesTest, ASolveOfEveryKindOfProblemIsCounted) {
  for (const MemoryScene& scene : MemoryScenes()) {
    ExpectAllCounted(scene.name,
                     [&](Stream* stream) { stream->Solve(scene.problem, FewIterations()); });
  }
}

TEST(StorageBytesTest, EveryMethodIsCounted) {
  const ProblemArrays problem = Heaps(1, 20, 20);
  for (const NewtonMethod newton :
       {NewtonMethod::kPlain, NewtonMethod::kAccelerated, NewtonMethod::kGaussSeidel}) {
    ExpectAllCounted("method", [&](Stream* stream) {
      stream->Solve(problem, {.max_iterations = 3, .newton = newton});
    });
  }
  ExpectAllCounted("exact friction", [&](Stream* stream) {
    stream->Solve(problem, {.max_iterations = 3, .coulomb = CoulombFriction()});
  });
  ExpectAllCounted("load path",
                   [&](Stream* stream) { stream->Solve(ByLoadPath(problem), FewIterations()); });
}

TEST(StorageBytesTest, DerivativesAreCounted) {
  const ProblemArrays problem = Heaps(1, 20, 10);
  const std::vector<double> ones(6 * problem.bodies.mass.size(), 1.0);
  DerivativesRequest request;
  request.cotangents.push_back({.velocity = ones});
  request.directions.push_back({});
  ExpectAllCounted("derivatives",
                   [&](Stream* stream) { stream->Solve(problem, FewIterations(), &request); });
}

TEST(StorageBytesTest, PlansOfPatternsThatMoveAreCountedAndBounded) {
  int64_t after_first = 0;
  int64_t most = 0;
  ExpectAllCounted("moving", [&](Stream* stream) {
    for (int step = 0; step < 400; ++step) {
      stream->Solve(Moving(step), FewIterations());
      if (step == 0) after_first = stream->counted();
      most = std::max(most, stream->counted());
    }
  });
  // A pattern is seldom much larger than the others.
  constexpr int64_t kMostOfPlans_bytes = PlanCache::kDefaultBytes;
  EXPECT_GT(most, after_first + kMostOfPlans_bytes / 2);
  EXPECT_LT(most, 2 * after_first + kMostOfPlans_bytes);
  ExpectAllCounted("moving, without the plans of earlier steps", [&](Stream* stream) {
    for (int step = 0; step < 50; ++step) stream->Solve(Moving(step), FewIterations());
    const int64_t before = stream->counted();
    stream->task.DropUnusedPlans();
    stream->solver.DropUnusedPlans();
    EXPECT_LT(stream->counted(), before - kMostOfPlans_bytes / 10);
    // What is left is whole: the last problem is solved by the plan that it has.
    stream->Solve(Moving(49), FewIterations());
  });
}

// Coupled trees have plans of their own, by the pattern of their blocks of A.
TEST(StorageBytesTest, CoupledTreesWithPatternsThatChangeAreCounted) {
  ExpectAllCounted("coupled", [&](Stream* stream) {
    for (int step = 0; step < 100; ++step) {
      const ProblemArrays whole =
          RandomTreesInContact(step, {.trees = 6, .contacts = 30, .min_dofs = 60, .max_dofs = 90});
      stream->Solve(InParts(whole, {3, 6, 1 + step % 5}), FewIterations());
    }
  });
}

}  // namespace
}  // namespace sap::test
