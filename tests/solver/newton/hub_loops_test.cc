#include "solver/newton/hub_loops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "solver/solve.h"
#include "tests/support/answer_errors.h"
#include "tests/support/primal_problem.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"

namespace sap::test {
namespace {

std::vector<int> Numbers(int count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// sum_i (1 / (1 + i), sqrt i) from (1, 2) on.
std::vector<double> Sums(TaskArena* arena, const std::vector<int>& numbers) {
  std::vector<double> sums{1, 2};
  SumOverSides(arena, std::span(numbers), 2, sums.data(), [](auto part, double* sum) {
    for (const int i : part) {
      sum[0] += 1.0 / (1 + i);
      sum[1] += std::sqrt(i);
    }
  });
  return sums;
}

TEST(HubLoopsTest, SumsAreComplete) {
  for (const int count : {0, 1, kHubSides.size, kHubSides.size + 1, 1000}) {
    long double first = 1;
    long double second = 2;
    for (int i = 0; i < count; ++i) {
      first += 1.0L / (1 + i);
      second += std::sqrt(static_cast<long double>(i));
    }
    const std::vector<double> sums = Sums(nullptr, Numbers(count));
    EXPECT_NEAR(sums[0], static_cast<double>(first), 1e-13 * sums[0]) << count;
    EXPECT_NEAR(sums[1], static_cast<double>(second), 1e-13 * sums[1]) << count;
  }
}

TEST(HubLoopsTest, SumsHaveTheSameBitsOnAnyNumberOfThreads) {
  const std::vector<int> numbers = Numbers(10000);
  const std::vector<double> alone = Sums(nullptr, numbers);
  for (const int threads : {1, 2, 4}) {
    TaskArena arena(threads, Sharing::kAlways);
    for (int repetition = 0; repetition < 20; ++repetition) {
      EXPECT_TRUE(SameBits(Sums(&arena, numbers), alone)) << threads << " threads";
    }
  }
}

TEST(HubLoopsTest, SidesOfOneRangeAndSumsOfLargeTreesAreNotCut) {
  TaskArena arena(2, Sharing::kAlways);
  const auto calls = [&](int count, int size) {
    const std::vector<int> numbers = Numbers(count);
    std::vector<double> sum(size);
    std::atomic<int> number{0};
    SumOverSides(&arena, std::span(numbers), size, sum.data(), [&](auto, double*) { ++number; });
    return number.load();
  };
  EXPECT_EQ(calls(kHubSides.size, 6), 1);
  EXPECT_EQ(calls(kHubSides.size + 1, 6), 2);
  EXPECT_EQ(calls(10000, 6), kHubSides.Count(0, 10000));
  EXPECT_EQ(calls(10000, 64 * 64), 1);
}

TEST(HubLoopsTest, EverySideIsVisitedOnce) {
  TaskArena arena(4, Sharing::kAlways);
  const std::vector<int> numbers = Numbers(5000);
  std::vector<std::atomic<int>> visits(numbers.size());
  ForSides(&arena, std::span(numbers), [&](auto part) {
    for (const int i : part) ++visits[i];
  });
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
}

TEST(HubLoopsTest, SolutionOfATableHasTheSameBitsOnAnyNumberOfThreads) {
  const ContactProblem problem = Checked(BodiesOnATable(700));
  const ContactSolution alone = Solve(problem);
  for (const int threads : {2, 4}) {
    TaskArena arena(threads, Sharing::kAlways);
    Solver solver(&arena);
    ContactSolution solution;
    ASSERT_TRUE(solver.Solve(problem, {}, StopToken(), &solution));
    ExpectSameBits(solution, alone);
  }
}

TEST(HubLoopsTest, SolutionOfATableIsWithinItsCertificateByEveryMethod) {
  const ProblemArrays arrays = BodiesOnATable(300);
  const ContactProblem problem = Checked(arrays);
  const PrimalProblem primal(arrays);
  const ContactSolution reference = Solve(problem, {.newton = NewtonMethod::kPlain});
  for (const NewtonMethod newton : {NewtonMethod::kAccelerated, NewtonMethod::kGaussSeidel}) {
    const ContactSolution solution = Solve(problem, {.max_iterations = 20'000, .newton = newton});
    EXPECT_EQ(solution.islands[0].status, SolveStatus::kConverged);
    const VectorL error = ToVectorL(solution.velocity) - ToVectorL(reference.velocity);
    EXPECT_LE(static_cast<double>(primal.NormA(error)),
              CertifiedVelocityError(solution) + CertifiedVelocityError(reference));
    // By the oracle: the gradient of the cost is as small as reported.
    const VectorL v = ToVectorL(solution.velocity);
    EXPECT_LE(static_cast<double>(primal.ScaledNorm(primal.Gradient(v))),
              1.1e-6L * std::max(primal.ScaledNorm(primal.TimesA(v)),
                                 primal.ScaledNorm(primal.TimesJt(primal.Impulse(v)))));
  }
}

}  // namespace
}  // namespace sap::test
