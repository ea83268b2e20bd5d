#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "solver/solve.h"
#include "tests/support/answer_errors.h"
#include "tests/support/solve_ways.h"

namespace sap::test {
namespace {

constexpr double kTolerance = 1e-5;

// One test per file of the set, so that a failure names it.
class GoldenProblemTest : public ::testing::TestWithParam<std::string> {
 protected:
  GoldenProblemTest() : golden_(LoadGolden(GetParam())), problem_(Checked(golden_.arrays)) {}

  const GoldenProblem golden_;
  const ContactProblem problem_;
};

TEST_P(GoldenProblemTest, IsSolvedWithinToleranceAndCertified) {
  const PrimalProblem primal(golden_.arrays);
  const double scale = VelocityScale(primal, golden_.reference);
  const double reference_error = golden_.reference.velocity_error_bound_rel * scale;
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    const ContactSolution solution = SolveBy(problem_, way);
    for (const IslandReport& report : solution.islands) {
      EXPECT_TRUE(report.status == SolveStatus::kConverged ||
                  report.status == SolveStatus::kStalledAtRoundoff)
          << static_cast<int>(report.status);
    }
    const AnswerErrors errors = Judge(primal, golden_.reference, solution);
    EXPECT_LE(std::abs(errors.cost), kTolerance);
    EXPECT_LE(errors.gradient, kTolerance);
    EXPECT_LE(errors.velocity, kTolerance);
    EXPECT_LE(errors.cone, kTolerance);
    EXPECT_LE(errors.generalized_impulse, kTolerance);
    EXPECT_LE(errors.momentum_balance, kTolerance);
    EXPECT_LE(errors.velocity * scale, CertifiedVelocityError(solution) + reference_error);
    EXPECT_NEAR(solution.cost, static_cast<double>(primal.Cost(ToVectorL(solution.velocity))),
                1e-9 * (std::abs(golden_.reference.cost) + 1e-8 * scale * scale));
  }
}

TEST_P(GoldenProblemTest, IslandsAreThoseOfTheReference) {
  SolverOptions options;
  options.max_iterations = 0;
  const ContactSolution solution = Solve(problem_, options);
  std::vector<bool> touched(problem_.num_trees(), false);
  for (const int tree : problem_.contact_trees()) touched[tree] = true;
  std::map<int, int> number_of_lowest;
  for (int tree = 0; tree < problem_.num_trees(); ++tree) {
    const int lowest = golden_.reference.island_of_tree[tree];
    int expected = -1;
    if (touched[tree]) {
      expected =
          number_of_lowest.emplace(lowest, static_cast<int>(number_of_lowest.size())).first->second;
    }
    EXPECT_EQ(solution.island_of_tree[tree], expected) << "tree " << tree;
  }
  EXPECT_EQ(solution.islands.size(), number_of_lowest.size());
}

// Without hand over, which is bounded by itself (StiffProblemsTest).
TEST_P(GoldenProblemTest, AccelerationCostsFewIterationsWhereItDoesNotHelp) {
  for (const bool islands : {true, false}) {
    const int plain = MostIterations(SolveBy(problem_, NewtonMethod::kPlain, islands));
    const int accelerated = MostIterations(
        Solve(problem_, {.islands = islands, .interior_point = InteriorPoint::kNever}));
    EXPECT_LE(accelerated, std::max(plain + 2, static_cast<int>(1.4 * plain)))
        << (islands ? "by islands" : "as a whole") << ", plain " << plain;
  }
}

INSTANTIATE_TEST_SUITE_P(Set, GoldenProblemTest, ::testing::ValuesIn(GoldenNames()), NameOfGolden);

// The paper's clutter stepped with SAP: the guess is the solution of the step before.
class SapDrivenTest : public GoldenProblemTest {};

TEST_P(SapDrivenTest, PlainNewtonOnTheWholeTakesTheRecordedIterations) {
  const ContactSolution solution = SolveBy(problem_, NewtonMethod::kPlain, false);
  ASSERT_EQ(solution.islands.size(), 1u);
  EXPECT_NEAR(solution.islands[0].iterations, golden_.reference.iterations_of_plain_newton, 2);
}

INSTANTIATE_TEST_SUITE_P(Set, SapDrivenTest, ::testing::ValuesIn(GoldenNames("sapdriven_")),
                         NameOfGolden);

class DrakeTest : public GoldenProblemTest {};

TEST_P(DrakeTest, VelocitiesAreThoseOfDrakeInTheNormOfA) {
  const PrimalProblem primal(golden_.arrays);
  const ContactSolution solution = Solve(problem_);
  ASSERT_EQ(golden_.drake_velocity.size(), solution.velocity.size());
  const VectorL difference = ToVectorL(solution.velocity) - ToVectorL(golden_.drake_velocity);
  EXPECT_LE(static_cast<double>(primal.NormA(difference)),
            kTolerance * VelocityScale(primal, golden_.reference));
}

TEST_P(DrakeTest, SolvedTightlyEveryVelocityIsThatOfDrake) {
  SolverOptions options;
  options.relative_tolerance = 1e-10;
  const ContactSolution solution = Solve(problem_, options);
  ASSERT_EQ(golden_.drake_velocity.size(), solution.velocity.size());
  for (size_t i = 0; i < solution.velocity.size(); ++i) {
    EXPECT_NEAR(solution.velocity[i], golden_.drake_velocity[i], kTolerance) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Set, DrakeTest, ::testing::ValuesIn(GoldenNames("drake_")), NameOfGolden);

TEST(GoldenSetTest, AcceleratedNewtonTakesAtMostSevenIterationsOnAverage) {
  double sum = 0;
  int count = 0;
  for (const std::string& name : GoldenNames()) {
    const ContactProblem problem = Checked(LoadGolden(name).arrays);
    if (problem.num_velocities() > 1300) continue;
    sum += MostIterations(SolveBy(problem, NewtonMethod::kAccelerated, true));
    ++count;
  }
  ASSERT_GT(count, 0);
  EXPECT_LE(sum / count, 7);
}

}  // namespace
}  // namespace sap::test
