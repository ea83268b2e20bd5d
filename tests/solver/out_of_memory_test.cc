// A solve that runs out of memory, wherever it does.
#include <gtest/gtest.h>

#include <new>

#include "solver/solve.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/arena_threads.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

TEST(OutOfMemoryTest, EndsAloneAndTheSolverCanBeUsedAgain) {
  const ContactProblem problem = Checked(HeapsBeforeAPile(4, 60));
  const ContactSolution expected = Solve(problem);
  for (const int threads : {1, 3}) {
    TaskArena arena(threads);
    StartThreads(&arena);
    int64_t allocations = AllocationCount();
    {
      ContactSolution solution;
      ASSERT_TRUE(Solver(&arena).Solve(problem, {}, StopToken(), &solution));
    }
    allocations = AllocationCount() - allocations;
    int failures = 0;
    for (int64_t nth = 1; nth <= allocations; nth += 1 + nth / 50) {
      Solver solver(&arena);
      ContactSolution solution;
      FailAllocation(nth);
      try {
        (void)solver.Solve(problem, {}, StopToken(), &solution);
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      FailAllocation(0);
      ASSERT_TRUE(solver.Solve(problem, {}, StopToken(), &solution));
      ASSERT_EQ(solution.velocity, expected.velocity) << nth << " of " << allocations;
      ASSERT_EQ(solution.impulse, expected.impulse);
    }
    EXPECT_GT(failures, 50);
  }
}

}  // namespace
}  // namespace sap::test
