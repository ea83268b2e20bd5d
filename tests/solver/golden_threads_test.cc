// The answer to every certified problem has the same bits on any number of threads.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "solver/solve.h"
#include "tests/support/golden_problem.h"
#include "tests/support/same_bits.h"

namespace sap::test {
namespace {

struct OnThreads {
  explicit OnThreads(int threads) : arena(threads, Sharing::kAlways), solver(&arena) {}

  TaskArena arena;
  Solver solver;
};

class GoldenThreadsTest : public ::testing::TestWithParam<GoldenSet> {};

TEST_P(GoldenThreadsTest, BitsAreThoseOfOneThread) {
  std::vector<std::unique_ptr<OnThreads>> shared;
  for (const int threads : {1, 2, 3, 7, 16}) shared.push_back(std::make_unique<OnThreads>(threads));
  Solver alone(nullptr);
  ContactSolution expected, solution;
  for (const std::string& name : GoldenNames("", GetParam())) {
    const ContactProblem problem = Checked(LoadGolden(name, GetParam()).arrays);
    ASSERT_TRUE(alone.Solve(problem, {}, StopToken(), &expected)) << name;
    for (const auto& on : shared) {
      SCOPED_TRACE(name + ", threads: " + std::to_string(on->arena.num_threads()));
      ASSERT_TRUE(on->solver.Solve(problem, {}, StopToken(), &solution));
      ExpectSameBits(solution, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, GoldenThreadsTest,
                         ::testing::Values(GoldenSet::kFriction, GoldenSet::kConstraints,
                                           GoldenSet::kSoft));

}  // namespace
}  // namespace sap::test
