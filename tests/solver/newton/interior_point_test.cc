#include "solver/newton/interior_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "solver/solve.h"
#include "tests/support/constraint_errors.h"
#include "tests/support/guessed_problem.h"
#include "tests/support/random_constraints.h"
#include "tests/support/same_bits.h"
#include "tests/support/scaled_problem.h"
#include "tests/support/solve_ways.h"

namespace sap::test {
namespace {

constexpr SolverOptions kAlways{.interior_point = InteriorPoint::kAlways};
constexpr SolverOptions kAuto{.interior_point = InteriorPoint::kAuto};

class StiffProblemsTest : public ::testing::TestWithParam<std::string> {
 protected:
  const GoldenProblem golden_{LoadGolden(GetParam(), GoldenSet::kStiff)};
  const ContactProblem problem_{Checked(golden_.arrays)};
};

// The gradient at velocities in doubles is left out: at small R rounding errors of v decide it.
TEST_P(StiffProblemsTest, AreSolvedAndCertified) {
  constexpr double kTolerance = 1e-5;
  const ConstrainedProblem exact(golden_.arrays);
  const VectorL v_reference = ToVectorL(golden_.reference.velocity);
  for (const SolverOptions& options : {kAlways, kAuto}) {
    const ContactSolution solution = Solve(problem_, options);
    long double bound = 0;
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.status, SolveStatus::kConverged);
      bound += report.optimality_gap_bound;
    }
    EXPECT_LE(MostIterations(solution), 29);
    const ConstraintErrors errors = JudgeConstraints(exact, golden_.reference, solution);
    EXPECT_LE(std::abs(errors.cost), kTolerance);
    EXPECT_LE(errors.velocity, kTolerance);
    EXPECT_LE(errors.admissibility, kTolerance);
    EXPECT_LE(errors.law, kTolerance);
    EXPECT_LE(errors.momentum_balance, kTolerance);
    const VectorL v = ToVectorL(solution.velocity);
    const long double rounding = 1e-17L * exact.CostMagnitude(v_reference);
    EXPECT_LE(exact.Cost(v) - exact.Cost(v_reference), bound + rounding);
  }
}

TEST_P(StiffProblemsTest, BitsAreThoseOfOneThread) {
  Solver alone(nullptr);
  ContactSolution expected, solution;
  ASSERT_TRUE(alone.Solve(problem_, kAlways, StopToken(), &expected));
  for (const int threads : {2, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    Solver shared(&arena);
    ASSERT_TRUE(shared.Solve(problem_, kAlways, StopToken(), &solution));
    ExpectSameBits(solution, expected);
  }
}

// Cut short anywhere, the answer costs no more than the guess.
TEST_P(StiffProblemsTest, IterationLimitNeverLeavesMoreThanTheCostOfTheGuess) {
  SolverOptions options = kAlways;
  options.max_iterations = 0;
  const ContactSolution guess = Solve(problem_, options);
  for (options.max_iterations = 1; options.max_iterations < 30; ++options.max_iterations) {
    const ContactSolution solution = Solve(problem_, options);
    for (size_t i = 0; i < solution.islands.size(); ++i) {
      EXPECT_LE(solution.islands[i].iterations, options.max_iterations);
      EXPECT_LE(solution.islands[i].cost, guess.islands[i].cost);
    }
  }
}

// The unit of mass is divided out, and so are the start and all thresholds.
TEST_P(StiffProblemsTest, VelocitiesAreTheSameBitsInAnyUnitOfMass) {
  const ContactSolution expected = Solve(problem_, kAlways);
  for (const double factor : {0x1p-30, 0x1p-1, 0x1p7, 0x1p40}) {
    const ContactSolution scaled = Solve(Checked(Scaled(golden_.arrays, factor)), kAlways);
    EXPECT_TRUE(SameBits(scaled.velocity, expected.velocity)) << factor;
    EXPECT_EQ(Iterations(scaled), Iterations(expected)) << factor;
  }
}

// Whenever the stop comes, the answer has its status and costs no more than the guess.
TEST_P(StiffProblemsTest, ADeadlineLeavesAnIterateThatCostsNoMoreThanTheGuess) {
  SolverOptions none = kAlways;
  none.max_iterations = 0;
  const ContactSolution guess = Solve(problem_, none);
  Solver solver(nullptr);
  ContactSolution solution;
  for (int step = 0; step < 40; ++step) {
    const auto deadline = StopToken::Clock::now() + step * std::chrono::microseconds(250);
    ASSERT_TRUE(solver.Solve(problem_, kAlways, StopToken(nullptr, deadline), &solution));
    for (size_t i = 0; i < solution.islands.size(); ++i) {
      const IslandReport& report = solution.islands[i];
      EXPECT_TRUE(report.status == SolveStatus::kConverged ||
                  report.status == SolveStatus::kDeadline);
      EXPECT_LE(report.cost, guess.islands[i].cost);
      EXPECT_GE(report.optimality_gap_bound, 0);
    }
  }
}

TEST_P(StiffProblemsTest, ACancellationIsReportedOrComesTooLate) {
  Solver solver(nullptr);
  ContactSolution solution;
  for (int step = 0; step < 20; ++step) {
    std::atomic<bool> cancelled{false};
    std::thread canceller([&] {
      std::this_thread::sleep_for(step * std::chrono::microseconds(500));
      cancelled = true;
    });
    const StopToken stop(&cancelled, StopToken::Clock::time_point::max());
    EXPECT_TRUE(solver.Solve(problem_, kAlways, stop, &solution));
    canceller.join();
    for (const IslandReport& report : solution.islands) {
      EXPECT_TRUE(report.status == SolveStatus::kConverged ||
                  report.status == SolveStatus::kCancelled);
    }
  }
  ContactSolution whole;
  ASSERT_TRUE(solver.Solve(problem_, kAlways, StopToken(), &whole));
  ExpectSameBits(whole, Solve(problem_, kAlways));
}

INSTANTIATE_TEST_SUITE_P(Golden, StiffProblemsTest,
                         ::testing::ValuesIn(GoldenNames("", GoldenSet::kStiff)), NameOfGolden);

// Problems that start from impulses.
class GuessedProblemsTest : public StiffProblemsTest {
 protected:
  const ContactSolution cold_{Solve(problem_, kAlways)};
  const ProblemArrays guessed_{WithGuess(golden_.arrays, cold_)};

  void ExpectRightAnswer(const ContactSolution& solution) const {
    const ConstraintErrors errors =
        JudgeConstraints(ConstrainedProblem(golden_.arrays), golden_.reference, solution);
    EXPECT_LE(errors.velocity, 1e-5);
    EXPECT_LE(errors.law, 1e-5);
    EXPECT_LE(errors.momentum_balance, 1e-5);
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.status, SolveStatus::kConverged);
    }
  }
};

TEST_P(GuessedProblemsTest, BitsAreThoseOfOneThread) {
  const ContactProblem problem = Checked(guessed_);
  const ContactSolution expected = Solve(problem, kAlways);
  for (const int threads : {2, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    Solver shared(&arena);
    ContactSolution solution;
    ASSERT_TRUE(shared.Solve(problem, kAlways, StopToken(), &solution));
    ExpectSameBits(solution, expected);
  }
}

TEST_P(GuessedProblemsTest, VelocitiesAreTheSameBitsInAnyUnitOfMass) {
  const ContactSolution expected = Solve(Checked(guessed_), kAlways);
  for (const double factor : {0x1p-30, 0x1p-1, 0x1p7, 0x1p40}) {
    const ContactSolution scaled = Solve(Checked(Scaled(guessed_, factor)), kAlways);
    EXPECT_TRUE(SameBits(scaled.velocity, expected.velocity)) << factor;
    EXPECT_EQ(Iterations(scaled), Iterations(expected)) << factor;
  }
}

TEST_P(GuessedProblemsTest, AGuessOfZerosChangesNoBit) {
  ContactSolution none = cold_;
  for (std::vector<double>* impulses : {&none.impulse, &none.angular_impulse, &none.row_impulse}) {
    std::ranges::fill(*impulses, 0.0);
  }
  ExpectSameBits(Solve(Checked(WithGuess(golden_.arrays, none)), kAlways), cold_);
}

TEST_P(GuessedProblemsTest, OtherMethodsDoNotReadTheGuess) {
  for (const SolverOptions& options : {SolverOptions{.newton = NewtonMethod::kPlain},
                                       SolverOptions{.interior_point = InteriorPoint::kNever}}) {
    ExpectSameBits(Solve(Checked(guessed_), options), Solve(problem_, options));
  }
}

// Huge, of the wrong sign, outside of the cone, next to nothing: the answer is the same.
TEST_P(GuessedProblemsTest, NoGuessKeepsTheAnswerFromBeingFound) {
  Random random(2);
  for (const double factor : {-1.0, 1e3, -1e6, 1e12, 1e-12, 1e300, -1e300, 1e-300}) {
    ContactSolution wrong = cold_;
    for (std::vector<double>* impulses :
         {&wrong.impulse, &wrong.angular_impulse, &wrong.row_impulse}) {
      for (double& impulse : *impulses) impulse = factor * Uniform(&random, -1, 1);
    }
    SCOPED_TRACE(factor);
    ExpectRightAnswer(Solve(Checked(WithGuess(golden_.arrays, wrong)), kAlways));
    ContactSolution multiple = cold_;
    for (std::vector<double>* impulses :
         {&multiple.impulse, &multiple.angular_impulse, &multiple.row_impulse}) {
      for (double& impulse : *impulses) impulse *= std::min(std::abs(factor), 1e200);
    }
    ExpectRightAnswer(Solve(Checked(WithGuess(golden_.arrays, multiple)), kAlways));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, GuessedProblemsTest,
                         ::testing::ValuesIn(GoldenNames("", GoldenSet::kStiff)), NameOfGolden);

// The impulses of the answer, off by up to a fifth, as those of the step before are where something
// moves.
TEST(InteriorPointTest, ImpulsesThatAreAboutRightTakeFewerIterations) {
  int cold = 0, warm = 0;
  Random random(1);
  for (const std::string& name : GoldenNames("", GoldenSet::kStiff)) {
    const ProblemArrays arrays = LoadGolden(name, GoldenSet::kStiff).arrays;
    ContactSolution solution = Solve(Checked(arrays), kAlways);
    cold += MostIterations(solution);
    for (std::vector<double>* impulses :
         {&solution.impulse, &solution.angular_impulse, &solution.row_impulse}) {
      for (double& impulse : *impulses) impulse *= Uniform(&random, 0.8, 1.2);
    }
    warm += MostIterations(Solve(Checked(WithGuess(arrays, solution)), kAlways));
  }
  EXPECT_LT(warm, 0.85 * cold);
}

// Rest is left to the accelerated method, which comes first; what moves is handed over earlier.
TEST(InteriorPointTest, IslandsWithAGuessAreHandedOverAfterTwoIterations) {
  int cold = 0, warm = 0;
  for (const std::string& name : GoldenNames("", GoldenSet::kStiff)) {
    const ProblemArrays arrays = LoadGolden(name, GoldenSet::kStiff).arrays;
    const ContactSolution solution = Solve(Checked(arrays), kAuto);
    cold += MostIterations(solution);
    warm += MostIterations(Solve(Checked(WithGuess(arrays, solution)), kAuto));
  }
  EXPECT_LT(warm, 0.8 * cold);
}

void ExpectAnswered(const ProblemArrays& arrays, uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const ContactSolution solution = Solve(Checked(arrays), kAlways);
  for (const double v : solution.velocity) ASSERT_TRUE(std::isfinite(v));
  for (const double impulse : solution.impulse) ASSERT_TRUE(std::isfinite(impulse));
  for (const double impulse : solution.row_impulse) ASSERT_TRUE(std::isfinite(impulse));
  for (const IslandReport& report : solution.islands) {
    EXPECT_NE(report.status, SolveStatus::kNumericalFailure);
    EXPECT_NE(report.status, SolveStatus::kDeadline);
    EXPECT_NE(report.status, SolveStatus::kCancelled);
    EXPECT_TRUE(std::isfinite(report.cost));
    EXPECT_GE(report.optimality_gap_bound, 0);
    if (report.status == SolveStatus::kConverged) {
      EXPECT_TRUE(std::isfinite(report.optimality_gap_bound));
    }
  }
}

// R_n / w and R_t / w of 1e-10, a row's alike.
void MakeStiff(ProblemArrays* arrays) {
  arrays->regularization.beta = arrays->regularization.row_beta = 6.3e-5;
  arrays->regularization.sigma = 1e-10;
}

TEST(InteriorPointTest, EveryKindOfStiffProblemIsAnswered) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (ProblemArrays arrays : {RandomConstraintsOfEveryKind(seed), RandomLegalProblem(seed)}) {
      MakeStiff(&arrays);
      ExpectAnswered(arrays, seed);
    }
  }
}

TEST(InteriorPointTest, StiffContactsWithoutFrictionAreAnswered) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    ProblemArrays arrays = RandomTreesInContact(seed);
    MakeStiff(&arrays);
    arrays.contacts.law.friction.assign(arrays.contacts.law.friction.size(), 0.0);
    ExpectAnswered(arrays, seed);
  }
}

// Rows in pairs along the same direction: their targets differ, or their bounds are equal.
TEST(InteriorPointTest, RowsThatContradictEachOtherAreAnswered) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (uint64_t seed = 0; seed < 50; ++seed) {
    ProblemArrays arrays = RandomTreesInContact(seed);
    MakeStiff(&arrays);
    Random random(seed);
    for (int pair = 0; pair < 4; ++pair) {
      const double target = LogUniform(&random, 1e-3, 1e3);
      const double bound = LogUniform(&random, 1e-3, 1e3);
      for (const double sign : {1.0, -1.0}) {
        arrays.AddRow({0}, {1.0});
        arrays.rows.target_velocity.push_back(sign * target);
        const bool given = pair == 1 || (pair == 2 && sign > 0);
        arrays.rows.force_lower.push_back(given ? sign * bound : pair == 3 ? -bound : 0.0);
        arrays.rows.force_upper.push_back(given ? sign * bound : kInfinity);
      }
    }
    ExpectAnswered(arrays, seed);
  }
}

TEST(InteriorPointTest, ProblemsWithoutConstraintsAreAnswered) {
  ExpectAnswered(RandomTreesInContact(1, {.contacts = 0}), 1);
}

}  // namespace
}  // namespace sap::test
