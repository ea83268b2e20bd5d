// Problems with rows, cones of every kind, contacts of Hunt & Crossley and coupled trees, against
// their certified optima.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "solver/solve.h"
#include "tests/support/constraint_errors.h"
#include "tests/support/solve_ways.h"

namespace sap::test {
namespace {

constexpr double kTolerance = 1e-5;
constexpr long double kRoundoff = 1e-15L;         // of a cost in doubles, by the sizes of its terms
constexpr long double kExactArithmetic = 1e-17L;  // rounding errors of the oracle, with a margin

long double GapBound(const ContactSolution& solution) {
  long double gap = 0;
  for (const IslandReport& report : solution.islands) gap += report.optimality_gap_bound;
  return gap;
}

// Certified distance to the optimum, in the norm of A.
long double VelocityError(const ContactSolution& solution) {
  return std::sqrt(2 * GapBound(solution));
}

// One test per file of a set, so that a failure names it.
class GoldenConstraintsTest : public ::testing::TestWithParam<std::tuple<GoldenSet, std::string>> {
 protected:
  GoldenConstraintsTest()
      : golden_(LoadGolden(std::get<1>(GetParam()), std::get<0>(GetParam()))),
        problem_(Checked(golden_.arrays)) {}

  // Coupled trees can be ill-conditioned enough for rounding errors to decide the last digits, and
  // cables are the one kind of problem that acceleration costs a third iteration.
  static bool IsSoft() { return std::get<0>(GetParam()) == GoldenSet::kSoft; }

  const GoldenProblem golden_;
  const ContactProblem problem_;
};

TEST_P(GoldenConstraintsTest, IsSolvedWithinToleranceAndCertified) {
  const ConstrainedProblem exact(golden_.arrays);
  const VectorL v_reference = ToVectorL(golden_.reference.velocity);
  const long double magnitude = exact.CostMagnitude(v_reference);
  const long double product = exact.QuadraticMagnitude(v_reference);
  EXPECT_NEAR(static_cast<double>(exact.Cost(v_reference) - golden_.reference.cost), 0,
              static_cast<double>(1e-12L * magnitude));
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    const ContactSolution solution = SolveBy(problem_, way);
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.status, SolveStatus::kConverged);
    }
    const ConstraintErrors errors = JudgeConstraints(exact, golden_.reference, solution);
    EXPECT_LE(std::abs(errors.cost), kTolerance);
    EXPECT_LE(errors.gradient, kTolerance);
    EXPECT_LE(errors.velocity, kTolerance);
    EXPECT_LE(errors.admissibility, kTolerance);
    EXPECT_LE(errors.law, kTolerance);
    EXPECT_LE(errors.generalized_impulse, kTolerance);
    EXPECT_LE(errors.momentum_balance, kTolerance);
    // The excess over the reference is at most that over the optimum.
    const VectorL v = ToVectorL(solution.velocity);
    const long double excess = exact.Cost(v) - exact.Cost(v_reference);
    EXPECT_LE(excess, GapBound(solution) + kExactArithmetic * (magnitude + product));
    const long double rounding = kRoundoff * std::max(product, exact.QuadraticMagnitude(v));
    EXPECT_NEAR(solution.cost, static_cast<double>(exact.Cost(v)),
                static_cast<double>(1e-9L * magnitude + rounding));
  }
}

TEST_P(GoldenConstraintsTest, PlainAndAcceleratedNewtonAgreeByIslandsAndAsAWhole) {
  const ConstrainedProblem exact(golden_.arrays);
  const long double scale = VelocityScale(exact, golden_.reference);
  const SolverOptions tight{.relative_tolerance = 1e-10};
  const ContactSolution first = Solve(problem_, tight);
  const VectorL v = ToVectorL(first.velocity);
  for (const Way& way : kWays) {
    SolverOptions options = tight;
    options.newton = way.newton;
    options.islands = way.islands;
    const ContactSolution other = Solve(problem_, options);
    EXPECT_LE(exact.NormA(ToVectorL(other.velocity) - v),
              1e-9L * scale + (IsSoft() ? VelocityError(first) + VelocityError(other) : 0))
        << way.name;
  }
}

TEST_P(GoldenConstraintsTest, IslandsAreThoseOfTheReference) {
  const ContactSolution solution = Solve(problem_, {.max_iterations = 0});
  std::vector<bool> touched(problem_.num_trees(), false);
  for (const int tree : problem_.contact_trees()) touched[tree] = true;
  for (const RowEntry& entry : problem_.row_entries()) touched[entry.tree] = true;
  for (const CoupledPair& pair : problem_.coupled_trees().pairs()) {
    touched[pair.a] = touched[pair.b] = true;
  }
  std::map<int, int> number_of_lowest;
  for (int tree = 0; tree < problem_.num_trees(); ++tree) {
    int expected = -1;
    if (touched[tree]) {
      const int lowest = golden_.reference.island_of_tree[tree];
      const int next = static_cast<int>(number_of_lowest.size());
      expected = number_of_lowest.emplace(lowest, next).first->second;
    }
    EXPECT_EQ(solution.island_of_tree[tree], expected) << "tree " << tree;
  }
  EXPECT_EQ(solution.islands.size(), number_of_lowest.size());
}

TEST_P(GoldenConstraintsTest, AccelerationCostsFewIterationsWhereItDoesNotHelp) {
  for (const bool islands : {true, false}) {
    const int plain = MostIterations(SolveBy(problem_, NewtonMethod::kPlain, islands));
    const int accelerated = MostIterations(SolveBy(problem_, NewtonMethod::kAccelerated, islands));
    EXPECT_LE(accelerated, std::max(plain + (IsSoft() ? 3 : 2), static_cast<int>(1.4 * plain)))
        << (islands ? "by islands" : "as a whole") << ", plain " << plain;
  }
}

auto ProblemsOf(GoldenSet set) {
  return ::testing::Combine(::testing::Values(set), ::testing::ValuesIn(GoldenNames("", set)));
}
std::string NameOf(const testing::TestParamInfo<std::tuple<GoldenSet, std::string>>& info) {
  return NameOfGolden({std::get<1>(info.param), info.index});
}

INSTANTIATE_TEST_SUITE_P(Set, GoldenConstraintsTest, ProblemsOf(GoldenSet::kConstraints), NameOf);
INSTANTIATE_TEST_SUITE_P(SoftSet, GoldenConstraintsTest, ProblemsOf(GoldenSet::kSoft), NameOf);

// The oracle is worth nothing if it lets wrong impulses pass.
TEST(GoldenConstraintsSetTest, OneWrongImpulseOfTheReferenceIsFound) {
  const GoldenProblem golden = LoadGolden("rows_everything_t0p40", GoldenSet::kConstraints);
  const ConstrainedProblem exact(golden.arrays);
  ContactSolution right;
  right.velocity = golden.reference.velocity;
  right.impulse = golden.reference.impulse;
  right.angular_impulse = golden.reference.angular_impulse;
  right.row_impulse = golden.reference.row_impulse;
  EXPECT_LE(JudgeConstraints(exact, golden.reference, right).law, 1e-9);
  for (const auto impulses : {&ContactSolution::impulse, &ContactSolution::angular_impulse,
                              &ContactSolution::row_impulse}) {
    ContactSolution wrong = right;
    std::vector<double>& values = wrong.*impulses;
    double& largest = *std::max_element(values.begin(), values.end());
    largest *= -1;  // pulls, pushes the wrong way, or turns with the slip
    EXPECT_GT(JudgeConstraints(exact, golden.reference, wrong).law, 10 * kTolerance);
  }
}

TEST(GoldenConstraintsSetTest, AcceleratedNewtonTakesAtMostFiveAndAHalfIterationsOnAverage) {
  double sum = 0;
  int count = 0;
  for (const std::string& name : GoldenNames("", GoldenSet::kConstraints)) {
    const ContactProblem problem = Checked(LoadGolden(name, GoldenSet::kConstraints).arrays);
    sum += MostIterations(SolveBy(problem, NewtonMethod::kAccelerated, true));
    ++count;
  }
  ASSERT_GT(count, 0);
  EXPECT_LE(sum / count, 5.5);
}

}  // namespace
}  // namespace sap::test
