#include "solver/newton/accuracy_certificate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "solver/solve.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/answer_errors.h"
#include "tests/support/dense_algebra.h"
#include "tests/support/dense_problem.h"
#include "tests/support/random_constraints.h"
#include "tests/support/tree_parts.h"

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

// The bound is |grad|_{A^-1}^2 / 2 except for the allowance for rounding, which is small far from
// the optimum, or the cost where that is less.
TEST(CertificateTest, BoundIsTheDualNormOfTheGradientWhereRoundingIsSmall) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ProblemArrays arrays = RandomTreesInContact(seed);
    const PrimalProblem primal(arrays);
    const ContactSolution guess = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 0);
    // Trees without contact have no gradient at v*.
    const VectorL gradient = primal.Gradient(ToVectorL(guess.velocity));
    const double expected =
        std::min(static_cast<double>(gradient.dot(primal.TimesInverseA(gradient)) / 2), guess.cost);
    EXPECT_NEAR(GapBound(guess), expected, 1e-9 * expected);
    EXPECT_GE(GapBound(guess), expected * (1 - 1e-13));
  }
}

// |grad l|_{A^-1} over all islands at `times` the guess, asked for twice.
double NormAt(double times, PreparedProblem* prepared) {
  double sum = 0;
  for (double& v : prepared->data.v) v *= times;
  for (int island = 0; island < prepared->graph.islands().count(); ++island) {
    const IslandView view = prepared->View(island);
    Evaluate(view, &prepared->data, &prepared->scratch);
    const double norm = NormOfGradient(view, StopToken(), &prepared->data);
    EXPECT_EQ(NormOfGradient(view, StopToken(), &prepared->data), norm);
    sum += norm * norm * view.constants().mass_unit;
  }
  for (double& v : prepared->data.v) v /= times;
  return std::sqrt(sum);
}

TEST(CertificateTest, NormOfCoupledTreesIsThatOfTheWholeWhereverTheyAreEvaluated) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const ProblemArrays arrays =
        RandomTreesInContact(seed, {.trees = 5, .contacts = 40, .min_dofs = 4, .max_dofs = 13});
    PreparedProblem whole(arrays);
    PreparedProblem parts(InParts(arrays, {3}));
    // A tree that nothing touches is in no island, but its parts are in one.
    ASSERT_EQ(whole.graph.num_slots(), 5);
    for (const double times : {1.0, 8.0, 0.5}) {
      const double expected = NormAt(times, &whole);
      EXPECT_NEAR(NormAt(times, &parts), expected, 1e-9 * expected);
    }
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

// The contact is so soft that the cost is 1/2 |v - v*|_A^2 except for a linear term, and the bound
// has to be met almost exactly: what the factor of A is off by shows. The Jacobian is along the
// softest direction of A, where that is most.
TEST(CertificateTest, BoundHoldsWhereTheDynamicsMatrixIsIllConditioned) {
  for (const double smallest : {1e-4, 1e-6, 1e-8, 1e-10, 1e-12}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      constexpr int kDofs = 6;
      const Eigen::MatrixXd A = RandomDynamicsMatrix(&random, kDofs, smallest, 1);
      ProblemArrays arrays;
      arrays.regularization.beta = 0;
      arrays.AddTree(A, Eigen::VectorXd::Zero(kDofs));
      ProblemArrays::Jacobian J = ProblemArrays::Jacobian::Zero(3, kDofs);
      J.row(2) = SoftestDirectionOf(A).transpose();
      arrays.AddContact(0, J, {.signed_distance = -1, .stiffness = 1e-12 * smallest});
      arrays.contacts.law.friction = {0.0};
      const PrimalProblem primal(arrays);
      const ContactSolution guess = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 0);
      // The gap as 1/2 |grad|^2 in the inverse of A, of which the contact's stiffness takes 1e-16.
      const VectorL gradient = primal.Gradient(ToVectorL(guess.velocity));
      const long double gap = gradient.dot(primal.TimesInverseA(gradient)) / 2;
      EXPECT_GE(GapBound(guess), static_cast<double>(gap) * (1 - 1e-14))
          << "smallest eigenvalue " << smallest << ", seed " << seed;
    }
  }
}

// On the boundary of sliding and open the impulse is all rounding, so that no share of the impulse
// bounds its error.
TEST(CertificateTest, BoundHoldsWhereAContactIsAboutToSlide) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const double slip = Uniform(&random, 0.1, 10);
    const double R_t = LogUniform(&random, 1e-6, 1e-2);
    const double R_n = LogUniform(&random, 1e-3, 1);
    const double mu = LogUniform(&random, 0.1, 10);
    ProblemArrays arrays;
    // y_n + mu_hat y_r = 0: a velocity of separation of mu times the slip.
    const double separation = slip * mu * (1 - UniformInt(&random, -4, 4) * 0x1p-53);
    arrays.AddTree(Eigen::Matrix3d::Identity(), Eigen::Vector3d(slip, 0, separation));
    arrays.AddContact(0, Eigen::Matrix3d::Identity(), {.signed_distance = 0, .friction = mu});
    arrays.contacts.law.regularization_t = {R_t};
    arrays.contacts.law.regularization_n = {R_n};
    const PrimalProblem primal(arrays);
    const ContactSolution guess = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 0);
    const VectorL v = ToVectorL(guess.velocity);
    const VectorL gradient = primal.Gradient(v);
    const long double by_gradient = gradient.dot(primal.TimesInverseA(gradient)) / 2;
    EXPECT_LE(static_cast<double>(std::min(by_gradient, primal.Cost(v))), GapBound(guess))
        << "seed " << seed;
  }
}

// A unit mass on a spring of R = 1 whose surface moves, so that v_hat - b is small next to both.
TEST(CertificateTest, BoundHoldsWhereTheVelocityOfTheSurfaceCancelsTheTarget) {
  ProblemArrays arrays;
  arrays.time_step = 1e-3;
  arrays.AddTree(Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Zero(1));
  arrays.AddContact(0, Eigen::Vector3d(0, 0, 1),
                    {.signed_distance = -0.7, .relaxation_time = 0, .friction = 0});
  arrays.contacts.law.surface_velocity = {0, 0, 700 - 1e-9};
  arrays.contacts.law.regularization_t = {1.0};
  arrays.contacts.law.regularization_n = {1.0};
  const ContactSolution solution = SolveUpTo(Checked(arrays), NewtonMethod::kAccelerated, 500);
  const VectorL gradient = PrimalProblem(arrays).Gradient(ToVectorL(solution.velocity));
  EXPECT_LE(static_cast<double>(gradient.squaredNorm() / 2), GapBound(solution));
}

// Draws problems of one body with contacts whose surfaces move as fast as their springs push, and
// rows whose feed-forward balances their springs.
ProblemArrays CancellingTargets(uint64_t seed) {
  Random random(seed);
  ProblemArrays arrays;
  arrays.time_step = 1e-3;
  const int dofs = UniformInt(&random, 1, 6);
  arrays.AddTree(RandomDynamicsMatrix(&random, dofs, 0.1, 10),
                 1e-9 * UniformVector(&random, dofs, -1, 1));
  const auto difference = [&] { return LogUniform(&random, 1e-12, 1e-3); };
  for (int i = UniformInt(&random, 1, 3); i > 0; --i) {
    ProblemArrays::Jacobian J(3, dofs);
    for (double& entry : J.reshaped()) entry = Uniform(&random, -1, 1);
    const double distance = -Uniform(&random, 0.1, 1);
    arrays.AddContact(0, J, {.signed_distance = distance, .relaxation_time = 0, .friction = 0});
    for (const double b : {0.0, 0.0, -distance / arrays.time_step - difference()}) {
      arrays.contacts.law.surface_velocity.push_back(b);
    }
    arrays.contacts.law.regularization_t.push_back(LogUniform(&random, 1e-3, 1));
    arrays.contacts.law.regularization_n.push_back(LogUniform(&random, 1e-3, 1));
  }
  for (int i = UniformInt(&random, 0, 2); i > 0; --i) {
    std::vector<uint32_t> indices(dofs);
    std::iota(indices.begin(), indices.end(), 0);
    const Eigen::VectorXd J = UniformVector(&random, dofs, -1, 1);
    const double R = LogUniform(&random, 1e-3, 1);
    const double target = Uniform(&random, 100, 1000);
    arrays.AddRow(indices, {J.begin(), J.end()});
    arrays.rows.regularization.push_back(R);
    arrays.rows.target_velocity.push_back(target);
    arrays.rows.force_offset.push_back(-(target - difference()) / (R * arrays.time_step));
  }
  return arrays;
}

TEST(CertificateTest, BoundHoldsWherePartsOfTargetsCancel) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const ProblemArrays arrays = CancellingTargets(seed);
    const ContactSolution solution =
        SolveUpTo(Checked(arrays), NewtonMethod::kAccelerated, 500, 1e-15);
    const DenseProblem dense(arrays);
    const VectorL gradient = dense.Gradient(ToVectorL(solution.velocity));
    EXPECT_LE(static_cast<double>(gradient.dot(InverseOf(dense.A()) * gradient) / 2),
              GapBound(solution))
        << "seed " << seed;
  }
}

// With laws whose cost is never negative the cost is a bound of the gap, and the norm of the
// gradient, where contacts are stiff, a far larger one.
TEST(CertificateTest, BoundIsNoLargerThanACostOfTermsThatAreNotNegative) {
  int smaller = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ProblemArrays arrays = RandomTreesInContact(seed);
    const PrimalProblem primal(arrays);
    const ContactSolution tight = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 500, 1e-14);
    const long double optimal_cost = primal.Cost(ToVectorL(tight.velocity));
    for (const int iterations : {0, 1, 2}) {
      const ContactSolution solution =
          SolveUpTo(Checked(arrays), NewtonMethod::kAccelerated, iterations);
      const VectorL v = ToVectorL(solution.velocity);
      const VectorL gradient = primal.Gradient(v);
      EXPECT_LE(GapBound(solution), solution.cost * (1 + 1e-12));
      EXPECT_GE(GapBound(solution), static_cast<double>(primal.Cost(v) - optimal_cost));
      smaller += GapBound(solution) < gradient.dot(primal.TimesInverseA(gradient)) / 4;
    }
  }
  EXPECT_GT(smaller, 30);
}

// A constant force pulls down without end: the cost is negative there and bounds nothing.
TEST(CertificateTest, BoundIsNotACostThatCanBeNegative) {
  ProblemArrays arrays;
  arrays.AddTree(Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Zero(1));
  arrays.AddRow({0}, {1.0});
  arrays.rows.regularization = {1.0};
  arrays.rows.force_lower = arrays.rows.force_upper = {200.0};
  const ContactSolution guess = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 0);
  const ContactSolution solution = SolveUpTo(Checked(arrays), NewtonMethod::kPlain, 500);
  EXPECT_LT(solution.cost, guess.cost);
  EXPECT_GE(GapBound(guess), guess.cost - solution.cost);
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

class EveryKindCertificateTest : public ::testing::TestWithParam<std::tuple<int, NewtonMethod>> {
 protected:
  EveryKindCertificateTest()
      : arrays_(RandomConstraintsOfEveryKind(std::get<0>(GetParam()))),
        problem_(Checked(arrays_)),
        dense_(arrays_),
        inverse_A_(InverseOf(dense_.A())) {}
  static NewtonMethod Method() { return std::get<1>(GetParam()); }
  // 1/2 |grad l|^2 in the inverse of A, in 80-bit arithmetic: of a gap a bound of its own.
  long double DualGap(const VectorL& v) const {
    const VectorL gradient = dense_.Gradient(v);
    return gradient.dot(inverse_A_ * gradient) / 2;
  }

  const ProblemArrays arrays_;
  const ContactProblem problem_;
  const DenseProblem dense_;
  const MatrixL inverse_A_;
};

TEST_P(EveryKindCertificateTest, BoundIsAboveTheGapAndTheDualNormAtEveryIterate) {
  const ContactSolution tight = SolveUpTo(problem_, NewtonMethod::kPlain, 500, 1e-14);
  const long double optimal_cost = dense_.Cost(ToVectorL(tight.velocity));
  for (int iterations = 0;; ++iterations) {
    const ContactSolution solution = SolveUpTo(problem_, Method(), iterations);
    const VectorL v = ToVectorL(solution.velocity);
    const long double rounding =
        16 * std::numeric_limits<long double>::epsilon() * dense_.CostSize(v);
    const double bound = GapBound(solution);
    EXPECT_LE(static_cast<double>(dense_.Cost(v) - optimal_cost - rounding), bound)
        << "after " << iterations << " iterations";
    // Also of the last iterates, whose gradient is rounding alone.
    const auto dual = static_cast<double>(DualGap(v));
    EXPECT_GE(bound, dual * (1 - 1e-13)) << "after " << iterations << " iterations";
    if (iterations == 0) {
      EXPECT_NEAR(bound, dual, 1e-6 * dual);
    }
    if (Ended(solution)) return;
    ASSERT_LT(iterations, 400);
  }
}

TEST_P(EveryKindCertificateTest, VelocityErrorIsWithinTheBound) {
  const ContactSolution tight = SolveUpTo(problem_, NewtonMethod::kPlain, 500, 1e-15);
  const long double error_of_tight = std::sqrt(2 * DualGap(ToVectorL(tight.velocity)));
  for (const double tolerance : {1e-1, 1e-3, 1e-6, 1e-9}) {
    const ContactSolution solution = SolveUpTo(problem_, Method(), 500, tolerance);
    const VectorL error = ToVectorL(solution.velocity) - ToVectorL(tight.velocity);
    EXPECT_LE(std::sqrt(error.dot(dense_.A() * error)),
              std::sqrt(2 * GapBound(solution)) + error_of_tight);
  }
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, EveryKindCertificateTest,
                         ::testing::Combine(::testing::Range(0, 16),
                                            ::testing::Values(NewtonMethod::kPlain,
                                                              NewtonMethod::kAccelerated)));

// Stiff constraints: 1/R turns the rounding of velocities into most of the gradient at the end.
TEST(CertificateTest, BoundCoversTheRoundingOfStiffConstraintsOfEveryKind) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    ProblemArrays arrays = RandomConstraintsOfEveryKind(seed, {.max_entries = 2});
    arrays.regularization.sigma = 1e-7;
    arrays.regularization.beta = 1e-3;
    arrays.regularization.row_beta = 1e-3;
    std::ranges::fill(arrays.contacts.law.relaxation_time, 0.0);
    arrays.rows.regularization.clear();
    arrays.rows.slip_parameter.clear();
    const DenseProblem dense(arrays);
    const ContactSolution solution =
        SolveUpTo(Checked(arrays), NewtonMethod::kAccelerated, 500, 1e-15);
    const VectorL gradient = dense.Gradient(ToVectorL(solution.velocity));
    const long double dual = gradient.dot(InverseOf(dense.A()) * gradient) / 2;
    EXPECT_LE(static_cast<double>(dual), GapBound(solution)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sap::test
