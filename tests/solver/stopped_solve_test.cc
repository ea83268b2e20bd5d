// What a deadline or a cancellation has cut is an iterate like any other: the one that the number
// of iterations tells. That is how recordings of such solves are replayed.
#include <gtest/gtest.h>

#include <chrono>

#include "solver/solve.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// Cuts a solve after every duration in turn, and asks for the same iterations without a clock.
void ExpectCutsToBeIterates(const ContactProblem& problem, SolverOptions options, int threads) {
  TaskArena arena(threads);
  Solver solver(&arena);
  options.relative_tolerance = 1e-12;
  ContactSolution whole;
  solver.Solve(problem, options, StopToken(), &whole);
  const double whole_s = whole.times.solve_s;
  constexpr int kCuts = 15;
  for (int cut = 0; cut < kCuts; ++cut) {
    const std::chrono::duration<double> after(whole_s * cut / kCuts);
    const StopToken stop(
        nullptr,
        StopToken::Clock::now() + std::chrono::duration_cast<StopToken::Clock::duration>(after));
    ContactSolution stopped;
    solver.Solve(problem, options, stop, &stopped);
    ASSERT_EQ(stopped.islands.size(), 1u);
    const IslandReport& report = stopped.islands[0];
    if (report.status != SolveStatus::kDeadline) continue;
    SolverOptions limited = options;
    limited.max_iterations = report.iterations;
    ContactSolution replayed;
    solver.Solve(problem, limited, StopToken(), &replayed);
    ASSERT_EQ(replayed.islands[0].status, SolveStatus::kIterationLimit);
    ASSERT_EQ(replayed.velocity, stopped.velocity) << report.iterations << " iterations";
    ASSERT_EQ(replayed.impulse, stopped.impulse);
    ASSERT_EQ(replayed.contact_velocity, stopped.contact_velocity);
    ASSERT_EQ(replayed.angular_impulse, stopped.angular_impulse);
    ASSERT_EQ(replayed.row_impulse, stopped.row_impulse);
    ASSERT_EQ(replayed.row_velocity, stopped.row_velocity);
    ASSERT_EQ(replayed.cost, stopped.cost);
    ASSERT_EQ(replayed.islands[0].momentum_residual, report.momentum_residual);
    ASSERT_EQ(replayed.islands[0].optimality_gap_bound, report.optimality_gap_bound);
    ASSERT_EQ(replayed.islands[0].coulomb_rounds, report.coulomb_rounds);
    ASSERT_EQ(replayed.islands[0].coulomb_defect, report.coulomb_defect);
  }
}

TEST(StoppedSolveTest, ACutSolveIsTheIterateOfItsIterationCount) {
  const ContactProblem problem = Checked(RandomBodiesInContact(3, 150, 600));
  for (const NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kAccelerated}) {
    for (const int threads : {1, 2}) ExpectCutsToBeIterates(problem, {.newton = newton}, threads);
  }
}

TEST(StoppedSolveTest, ACutSolveWithExactFrictionIsTheIterateOfItsIterationCount) {
  const ContactProblem problem = Checked(RandomBodiesInContact(3, 150, 600));
  SolverOptions options;
  options.coulomb.emplace();
  const ContactSolution whole = Solve(problem, options);
  ASSERT_EQ(whole.islands.size(), 1U);
  EXPECT_GT(whole.islands[0].coulomb_rounds, 2);
  for (const int threads : {1, 2}) ExpectCutsToBeIterates(problem, options, threads);
}

// Rows, and contacts of every law.
TEST(StoppedSolveTest, ACutSolveOfEveryConstraintIsTheIterateOfItsIterationCount) {
  const ContactProblem problem =
      Checked(LoadGolden("rows_everything_t0p40", GoldenSet::kConstraints).arrays);
  for (const NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kAccelerated}) {
    for (const int threads : {1, 2}) ExpectCutsToBeIterates(problem, {.newton = newton}, threads);
  }
}

// One tree whose factorizations are stopped within.
TEST(StoppedSolveTest, ACutSolveOfALargeTreeIsTheIterateOfItsIterationCount) {
  ExpectCutsToBeIterates(Checked(LargeTree(300, 20)), {}, 1);
}

}  // namespace
}  // namespace sap::test
