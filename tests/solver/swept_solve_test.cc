// Islands that are solved by Gauss-Seidel sweeps alone, as all larger ones are where there is no
// time to plan their factorization.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "solver/solve.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

TEST(SweptSolveTest, TheCostNeverRisesAndTheCertificateFallsAboveTheTrueGap) {
  const ContactProblem problem = Checked(HeapsBeforeAPile(1, 40));
  const ContactSolution converged = Solve(problem, {.relative_tolerance = 1e-10});
  const ContactSolution guess = Solve(problem, {.max_iterations = 0});
  ContactSolution last;
  for (int sweeps = 0; sweeps <= 30; ++sweeps) {
    const ContactSolution solution =
        Solve(problem, {.max_iterations = sweeps, .newton = NewtonMethod::kGaussSeidel});
    for (size_t i = 0; i < solution.islands.size(); ++i) {
      EXPECT_TRUE(solution.islands[i].swept);
      EXPECT_EQ(solution.islands[i].iterations, sweeps);
      EXPECT_EQ(solution.islands[i].status, SolveStatus::kIterationLimit);
      if (sweeps > 0) {
        EXPECT_LE(solution.islands[i].cost, last.islands[i].cost) << sweeps;
      }
      const double gap = solution.islands[i].cost - converged.islands[i].cost;
      EXPECT_GE(solution.islands[i].optimality_gap_bound, gap) << sweeps;
      if (sweeps == 30) {
        EXPECT_LT(gap, 0.01 * (guess.islands[i].cost - converged.islands[i].cost));
        EXPECT_LT(solution.islands[i].optimality_gap_bound,
                  0.1 * guess.islands[i].optimality_gap_bound);
      }
    }
    last = solution;
  }
}

TEST(SweptSolveTest, ConvergesToTheAnswerOfNewton) {
  const ContactProblem problem = Checked(Heaps(1, 2, 3));
  const SolverOptions options{.max_iterations = 100'000, .newton = NewtonMethod::kGaussSeidel};
  const ContactSolution swept = Solve(problem, options);
  const ContactSolution newton = Solve(problem, {.relative_tolerance = 1e-10});
  for (const IslandReport& report : swept.islands) {
    EXPECT_EQ(report.status, SolveStatus::kConverged);
  }
  EXPECT_LE(swept.cost - newton.cost,
            swept.islands[0].optimality_gap_bound + swept.islands[1].optimality_gap_bound);
  for (size_t i = 0; i < newton.velocity.size(); ++i) {
    EXPECT_NEAR(swept.velocity[i], newton.velocity[i], 1e-4);
  }
}

TEST(SweptSolveTest, BitsDoNotDependOnThreads) {
  const ContactProblem problem = Checked(HeapsBeforeAPile(3, 200));
  const SolverOptions options{.max_iterations = 10, .newton = NewtonMethod::kGaussSeidel};
  const ContactSolution expected = Solve(problem, options);
  for (const int threads : {2, 3}) {
    TaskArena arena(threads, Sharing::kAlways);
    ContactSolution solution;
    Solver solver(&arena);
    ASSERT_TRUE(solver.Solve(problem, options, StopToken(), &solution));
    EXPECT_EQ(solver.factor_bytes(), 0u);
    EXPECT_EQ(solution.velocity, expected.velocity);
    EXPECT_EQ(solution.impulse, expected.impulse);
  }
}

// Equal steps that go on from each other, each with half of the time that planning takes.
TEST(SweptSolveTest, ABudgetBelowTheTimeToPlanStillBringsTheAnswerNearer) {
  using std::chrono::duration;
  ContactProblem problem = Checked(HeapsBeforeAPile(0, 2000));
  const double first_gap = Solve(problem, {.max_iterations = 0}).islands[0].optimality_gap_bound;
  ContactSolution solution;
  ASSERT_TRUE(Solver(nullptr).Solve(problem, {.max_iterations = 0}, StopToken(), &solution));
  const duration<double> budget(0.5 * solution.times.islands_s);
  Solver solver(nullptr);
  double gap = first_gap;
  double cost = solution.cost;
  for (int step = 0; step < 200 && gap > 0.5 * first_gap; ++step) {
    const auto deadline =
        StopToken::Clock::now() + std::chrono::duration_cast<StopToken::Clock::duration>(budget);
    ASSERT_TRUE(solver.Solve(problem, {}, StopToken(nullptr, deadline), &solution));
    EXPECT_LE(solution.cost, cost);
    cost = solution.cost;
    gap = solution.islands[0].optimality_gap_bound;
    problem.SetGuess(solution.velocity);
  }
  EXPECT_LE(gap, 0.5 * first_gap);
}

// An island that a deadline left without a plan is the iterate of its number of sweeps.
TEST(SweptSolveTest, ACutSolveIsTheIterateOfItsSweeps) {
  const ContactProblem problem = Checked(HeapsBeforeAPile(2, 60));
  int swept = 0;
  for (int cut = 0; cut < 60; ++cut) {
    Solver solver(nullptr);
    ContactSolution solution;
    const auto deadline = StopToken::Clock::now() + cut * std::chrono::microseconds(20);
    ASSERT_TRUE(solver.Solve(problem, {}, StopToken(nullptr, deadline), &solution));
    for (size_t i = 0; i < solution.islands.size(); ++i) {
      const IslandReport& report = solution.islands[i];
      if (!report.swept) continue;
      ++swept;
      const ContactSolution again = Solve(
          problem, {.max_iterations = report.iterations, .newton = NewtonMethod::kGaussSeidel});
      EXPECT_EQ(again.islands[i].cost, report.cost);
      EXPECT_EQ(again.islands[i].optimality_gap_bound, report.optimality_gap_bound);
      EXPECT_EQ(again.islands[i].momentum_residual, report.momentum_residual);
    }
  }
  EXPECT_GT(swept, 0);
}

}  // namespace
}  // namespace sap::test
