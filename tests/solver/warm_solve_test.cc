// A step of a pattern seen before: no memory, no ordering; and how a solve is stopped.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "solver/run/island_schedule.h"
#include "solver/solve.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/arena_threads.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"

namespace sap {
namespace {

using test::AllocationCount;
using test::Checked;
using test::ProblemArrays;

class WarmSolveTest : public testing::TestWithParam<const char*> {};

// Rows, cones of every kind, laws of Hunt & Crossley, a body form: all in one step.
class WarmConstraintsTest : public testing::TestWithParam<std::string> {};

TEST_P(WarmConstraintsTest, AStepOfAPatternSeenBeforeAllocatesNothing) {
  ProblemArrays arrays = test::LoadGolden(GetParam(), test::GoldenSet::kConstraints).arrays;
  ContactProblem problem = Checked(arrays);
  std::vector<SolverOptions> every_method;
  for (const NewtonMethod newton :
       {NewtonMethod::kPlain, NewtonMethod::kAccelerated, NewtonMethod::kGaussSeidel}) {
    every_method.push_back({.max_iterations = 50, .newton = newton});
  }
  // An island that is handed over to the interior-point method allocates its states.
  every_method.push_back({.max_iterations = 50,
                          .interior_point = InteriorPoint::kNever,
                          .coulomb = CoulombFriction()});
  TaskArena arena(2);
  test::StartThreads(&arena);
  for (TaskArena* used : {static_cast<TaskArena*>(nullptr), &arena}) {
    for (const SolverOptions& options : every_method) {
      Solver solver(used);
      ContactSolution solution;
      solver.Solve(problem, options, StopToken(), &solution);
      for (int step = 0; step < 3; ++step) {
        for (double& v : arrays.trees.free_motion_velocity) v *= 0.99;
        for (double& v : arrays.bodies.free_motion_velocity) v *= 0.99;
        const ContactProblemView view = arrays.View();
        const int64_t before = AllocationCount();
        ASSERT_TRUE(problem.Reset(view));
        solver.Solve(problem, options, StopToken(), &solution);
        EXPECT_EQ(AllocationCount() - before, 0) << step;
      }
    }
  }
}

TEST_P(WarmConstraintsTest, DerivativesOfAPatternSeenBeforeAllocateNothing) {
  const ContactProblem problem =
      Checked(test::LoadGolden(GetParam(), test::GoldenSet::kConstraints).arrays);
  const std::vector<double> velocity(problem.num_velocities(), 1.0);
  const Cotangent cotangent{.velocity = velocity};
  ProblemDifferential direction;
  direction.Reset(problem);
  TaskArena arena(2);
  test::StartThreads(&arena);
  for (TaskArena* used : {static_cast<TaskArena*>(nullptr), &arena}) {
    Solver solver(used);
    ContactSolution solution;
    Derivatives derivatives;
    int64_t before = 0;
    for (int step = 0; step < 4; ++step) {
      if (step == 1) before = AllocationCount();
      ASSERT_TRUE(solver.Differentiate(problem, {}, {&cotangent, 1}, {&direction, 1}, {},
                                       StopToken(), &solution, &derivatives));
    }
    EXPECT_EQ(AllocationCount() - before, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, WarmConstraintsTest,
                         testing::ValuesIn(test::GoldenNames("", test::GoldenSet::kConstraints)),
                         test::NameOfGolden);

TEST_P(WarmSolveTest, AStepOfAPatternSeenBeforeAllocatesNothing) {
  ProblemArrays arrays = test::LoadGolden(GetParam()).arrays;
  ContactProblem problem = Checked(arrays);
  for (NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kAccelerated}) {
    const SolverOptions options{.newton = newton};
    Solver solver(nullptr);
    ContactSolution solution;
    solver.Solve(problem, options, StopToken(), &solution);
    for (int step = 0; step < 3; ++step) {
      for (double& v : arrays.trees.free_motion_velocity) v *= 0.99;
      const ContactProblemView view = arrays.View();
      const int64_t before = AllocationCount();
      ASSERT_TRUE(problem.Reset(view));
      solver.Solve(problem, options, StopToken(), &solution);
      EXPECT_EQ(AllocationCount() - before, 0) << step;
    }
  }
}

// Whichever thread solves which island.
TEST_P(WarmSolveTest, NorWithSeveralThreads) {
  ProblemArrays arrays = test::LoadGolden(GetParam()).arrays;
  ContactProblem problem = Checked(arrays);
  TaskArena arena(4);
  test::StartThreads(&arena);
  Solver solver(&arena);
  ContactSolution solution;
  solver.Solve(problem, {}, StopToken(), &solution);
  for (int step = 0; step < 20; ++step) {
    for (double& v : arrays.trees.free_motion_velocity) v *= 0.99;
    const ContactProblemView view = arrays.View();
    const int64_t before = AllocationCount();
    ASSERT_TRUE(problem.Reset(view));
    solver.Solve(problem, {}, StopToken(), &solution);
    EXPECT_EQ(AllocationCount() - before, 0) << step;
  }
}

TEST(WarmSolveTest, ALargeIslandIsAnsweredAlikeByAnyThreadsWithoutAllocation) {
  const ContactProblem problem = Checked(test::HeapsBeforeAPile(2, 400));
  ConstraintGraph graph;
  graph.Build(problem, true);
  IslandPlans plans;
  plans.Make(graph, StopToken(), nullptr);
  IslandSchedule schedule;
  schedule.Build(graph, plans);
  ASSERT_EQ(schedule.num_large(), 1);

  ContactSolution expected, solution;
  Solver(nullptr).Solve(problem, {}, StopToken(), &expected);
  TaskArena arena(3);
  test::StartThreads(&arena);
  Solver solver(&arena);
  solver.Solve(problem, {}, StopToken(), &solution);
  for (int step = 0; step < 20; ++step) {
    const int64_t before = AllocationCount();
    solver.Solve(problem, {}, StopToken(), &solution);
    EXPECT_EQ(AllocationCount() - before, 0) << step;
    test::ExpectSameBits(solution, expected);
  }
}

// A pile that comes to rest alternates between a few patterns.
TEST_P(WarmSolveTest, PatternsThatTakeTurnsAllocateNothingOnceSeen) {
  const ProblemArrays first = test::LoadGolden(GetParam()).arrays;
  ProblemArrays second = first;
  for (int32_t& tree_b : second.contacts.tree_b) tree_b = -1;
  second.contacts.jacobian.clear();
  for (const int32_t tree : second.contacts.tree_a) {
    second.contacts.jacobian.resize(second.contacts.jacobian.size() + 3 * first.trees.dofs[tree],
                                    0.5);
  }
  const ContactProblemView views[] = {first.View(), second.View()};
  Solver solver(nullptr);
  ContactProblem problem;
  ContactSolution solution;
  int64_t before = 0;
  for (int turn = 0; turn < 4; ++turn) {
    if (turn == 2) before = AllocationCount();
    for (const ContactProblemView& view : views) {
      ASSERT_TRUE(problem.Reset(view));
      solver.Solve(problem, {}, StopToken(), &solution);
    }
  }
  EXPECT_EQ(AllocationCount() - before, 0);
}

INSTANTIATE_TEST_SUITE_P(Golden, WarmSolveTest,
                         testing::Values("clutter_bin_40_t1p00", "dog_boxes_t1p40",
                                         "drake_bin_arm_12_t0p16", "stacks_9x10_t2p00"),
                         [](const auto& test) { return std::string(test.param); });

TEST(StoppedSolveTest, CancelledBeforeTheStartReturnsTheGuessAndNothingCertified) {
  const ProblemArrays arrays = test::RandomBodiesInContact(2, 10, 40);
  const ContactProblem problem = Checked(arrays);
  const std::atomic<bool> cancelled{true};
  Solver solver(nullptr);
  ContactSolution solution;
  solver.Solve(problem, {}, StopToken(&cancelled, StopToken::Clock::time_point::max()), &solution);
  for (int i = 0; i < problem.num_velocities(); ++i) {
    EXPECT_EQ(solution.velocity[i], problem.v_guess()[i]);
  }
  for (const IslandReport& report : solution.islands) {
    EXPECT_EQ(report.status, SolveStatus::kCancelled);
    EXPECT_EQ(report.iterations, 0);
    EXPECT_EQ(report.optimality_gap_bound, std::numeric_limits<double>::infinity());
  }
}

TEST(StoppedSolveTest, DeadlineInThePastIsReportedAsSuch) {
  const ContactProblem problem = Checked(test::RandomBodiesInContact(2, 10, 40));
  Solver solver(nullptr);
  ContactSolution solution;
  const auto past = StopToken::Clock::now() - std::chrono::seconds(1);
  solver.Solve(problem, {}, StopToken(nullptr, past), &solution);
  for (const IslandReport& report : solution.islands) {
    EXPECT_EQ(report.status, SolveStatus::kDeadline);
  }
}

// A pattern that was being laid out when the solve was stopped is laid out by the next one.
TEST(StoppedSolveTest, LeavesNothingBehindForTheNextSolve) {
  const ContactProblem problem = Checked(test::RandomBodiesInContact(3, 40, 200));
  const ContactSolution expected = Solve(problem);
  Solver solver(nullptr);
  ContactSolution solution;
  const std::atomic<bool> cancelled{true};
  const auto past = StopToken::Clock::now() - std::chrono::seconds(1);
  for (const StopToken& stop :
       {StopToken(&cancelled, StopToken::Clock::time_point::max()), StopToken(nullptr, past)}) {
    solver.Solve(problem, {}, stop, &solution);
    for (const IslandReport& report : solution.islands) EXPECT_EQ(report.iterations, 0);
    solver.Solve(problem, {}, StopToken(), &solution);
    EXPECT_EQ(solution.velocity, expected.velocity);
    EXPECT_EQ(solution.impulse, expected.impulse);
  }
}

// Whenever the deadline passes, the answer is the iterate of its number of iterations.
TEST(StoppedSolveTest, AtAnyDeadlineReturnsAnIterateWithItsCertificate) {
  const ContactProblem problem = Checked(test::RandomBodiesInContact(3, 40, 200));
  Solver solver(nullptr);
  ContactSolution solution, again;
  for (int i = 0; i < 40; ++i) {
    const auto deadline = StopToken::Clock::now() + i * std::chrono::microseconds(50);
    solver.Solve(problem, {}, StopToken(nullptr, deadline), &solution);
    for (const IslandReport& report : solution.islands) {
      EXPECT_TRUE(std::isfinite(report.optimality_gap_bound));
      if (solution.islands.size() > 1) continue;
      SolverOptions options{.max_iterations = report.iterations};
      if (report.swept) options.newton = NewtonMethod::kGaussSeidel;
      Solver(nullptr).Solve(problem, options, StopToken(), &again);
      EXPECT_EQ(solution.velocity, again.velocity) << report.iterations;
    }
  }
}

TEST(StoppedSolveTest, IterationLimitReturnsThatManyStepsAndSaysSo) {
  const ContactProblem problem = Checked(test::RandomBodiesInContact(4, 10, 40));
  double last_cost = 0;
  for (int limit : {0, 1, 2}) {
    SolverOptions options;
    options.relative_tolerance = 1e-14;
    options.max_iterations = limit;
    const ContactSolution solution = Solve(problem, options);
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.status, SolveStatus::kIterationLimit);
      EXPECT_EQ(report.iterations, limit);
    }
    if (limit > 0) {
      EXPECT_LT(solution.cost, last_cost);
    }
    last_cost = solution.cost;
  }
}

TEST(StoppedSolveTest, MatrixJustRepresentableIsAnsweredOrReported) {
  ProblemArrays arrays = test::Heaps(1, 2, 2);
  for (double mass : {1e-300, 1e300}) {
    arrays.bodies.mass[0] = mass;
    const ContactSolution solution = Solve(Checked(arrays));
    for (double v : solution.velocity) EXPECT_TRUE(std::isfinite(v)) << mass;
  }
}

}  // namespace
}  // namespace sap
