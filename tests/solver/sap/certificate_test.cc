#include "solver/sap/certificate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "solver/solve.h"
#include "tests/support/answer_errors.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

ContactSolution SolveUpTo(const ContactProblem& problem, NewtonMethod newton, int iterations,
                          double tolerance = 1e-12) {
  SolverOptions options;
  options.newton = newton;
  options.max_iterations = iterations;
  options.relative_tolerance = tolerance;
  return Solve(problem, options);
}

double GapBound(const ContactSolution& solution) {
  double bound = 0;
  for (const IslandReport& report : solution.islands) bound += report.optimality_gap_bound;
  return bound;
}

bool Ended(const ContactSolution& solution) {
  for (const IslandReport& report : solution.islands) {
    if (report.status == SolveStatus::kIterationLimit) return false;
  }
  return true;
}

// Follows a solve by cutting it short after 0, 1, 2, ... iterations. Needs the cost of the optimum,
// or one above it, so that the true gap is at least what is compared. Costs are known up to their
// rounding in 80 bits, and a gap below that is none.
void ExpectEveryIterateCertified(const ProblemArrays& arrays, NewtonMethod newton,
                                 long double optimal_cost) {
  const ContactProblem problem = Checked(arrays);
  const PrimalProblem primal(arrays);
  double last_cost = std::numeric_limits<double>::infinity();
  for (int iterations = 0; iterations < 400; ++iterations) {
    const ContactSolution solution = SolveUpTo(problem, newton, iterations);
    const long double cost = primal.Cost(ToVectorL(solution.velocity));
    const long double rounding = 16 * std::numeric_limits<long double>::epsilon() * cost;
    EXPECT_LE(static_cast<double>(cost - optimal_cost - rounding), GapBound(solution))
        << "after " << iterations << " iterations";
    // Up to the rounding of the sums.
    EXPECT_LE(solution.cost, last_cost * (1 + 1e-13)) << "after " << iterations << " iterations";
    last_cost = solution.cost;
    if (Ended(solution)) return;
  }
  FAIL() << "did not end";
}

class CertificateTest : public ::testing::TestWithParam<std::tuple<std::string, NewtonMethod>> {};

TEST_P(CertificateTest, EveryIterateIsCertifiedAndNoDearerThanTheOneBefore) {
  const auto& [name, newton] = GetParam();
  const GoldenProblem golden = LoadGolden(name);
  const PrimalProblem primal(golden.arrays);
  ExpectEveryIterateCertified(golden.arrays, newton,
                              primal.Cost(ToVectorL(golden.reference.velocity)));
}

INSTANTIATE_TEST_SUITE_P(
    Problems, CertificateTest,
    ::testing::Combine(::testing::Values("clutter_bin_8_t2p00", "clutter_piles_8_0_t2p00",
                                         "drake_bin_arm_12_t0p16", "nasty_vgroove_mu5",
                                         "nasty_wedged_mu0", "nasty_massratio_alternating_1e6",
                                         "nasty_small_trees_1", "sapdriven_bin_40_step20",
                                         "adroit_ball_t0p30", "nasty_bin40_guess_1e3"),
                       ::testing::Values(NewtonMethod::kPlain, NewtonMethod::kAccelerated)));

TEST(CertificateTest, RandomProblemsAreCertifiedAtEveryIterate) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ProblemArrays arrays = RandomTreesInContact(seed);
    const ContactSolution tight = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 500, 1e-14);
    const PrimalProblem primal(arrays);
    ExpectEveryIterateCertified(arrays, NewtonMethod::kAccelerated,
                                primal.Cost(ToVectorL(tight.velocity)));
  }
}

// The bound is |grad|_{A^-1}^2 / 2 but for the allowance for rounding, which is small far from the
// optimum.
TEST(CertificateTest, BoundIsTheDualNormOfTheGradientWhereRoundingIsSmall) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ProblemArrays arrays = RandomTreesInContact(seed);
    const PrimalProblem primal(arrays);
    const ContactSolution guess = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 0);
    // Trees without contact have no gradient at v*.
    const VectorL gradient = primal.Gradient(ToVectorL(guess.velocity));
    const double expected = static_cast<double>(gradient.dot(primal.TimesInverseA(gradient)) / 2);
    EXPECT_NEAR(GapBound(guess), expected, 1e-9 * expected);
    EXPECT_GE(GapBound(guess), expected * (1 - 1e-13));
  }
}

TEST(CertificateTest, VelocityErrorIsWithinTheCertificateAtEveryTolerance) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const ProblemArrays arrays = RandomTreesInContact(seed);
    const ContactProblem problem = Checked(arrays);
    const PrimalProblem primal(arrays);
    const ContactSolution tight = SolveUpTo(problem, NewtonMethod::kPlain, 500, 1e-15);
    for (const double tolerance : {1e-1, 1e-3, 1e-6, 1e-9}) {
      const ContactSolution loose = SolveUpTo(problem, NewtonMethod::kAccelerated, 500, tolerance);
      const VectorL error = ToVectorL(loose.velocity) - ToVectorL(tight.velocity);
      EXPECT_LE(static_cast<double>(primal.NormA(error)),
                CertifiedVelocityError(loose) + CertifiedVelocityError(tight));
    }
  }
}

// The momentum residual of the report is that of the paper's stopping test, island by island.
TEST(CertificateTest, MomentumResidualIsTheScaledGradientOfTheIsland) {
  const ProblemArrays arrays = RandomTreesInContact(3, {.trees = 10, .contacts = 40});
  const PrimalProblem primal(arrays);
  for (const int iterations : {0, 1, 3}) {
    SolverOptions options;
    options.max_iterations = iterations;
    options.islands = false;
    const ContactSolution solution = Solve(Checked(arrays), options);
    const VectorL v = ToVectorL(solution.velocity);
    const long double scale = std::max(primal.ScaledNorm(primal.TimesA(v)),
                                       primal.ScaledNorm(primal.TimesJt(primal.Impulse(v))));
    const double expected = static_cast<double>(primal.ScaledNorm(primal.Gradient(v)) / scale);
    ASSERT_EQ(solution.islands.size(), 1u);
    EXPECT_NEAR(solution.islands[0].momentum_residual, expected, 1e-9 * expected + 1e-14);
  }
}

}  // namespace
}  // namespace sap::test
