#include "solver/newton/sap_solver.h"

#include <gtest/gtest.h>

#include <cmath>

#include "solver/solve.h"
#include "tests/support/primal_problem.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

TEST(SapSolverTest, NegativeIterationLimitIsALimitOfNone) {
  const ContactProblem problem = Checked(RandomTreesInContact(1));
  SolverOptions options;
  options.max_iterations = -1;
  const ContactSolution negative = Solve(problem, options);
  options.max_iterations = 0;
  const ContactSolution none = Solve(problem, options);
  EXPECT_EQ(negative.velocity, none.velocity);
  for (const IslandReport& report : negative.islands) {
    EXPECT_EQ(report.status, SolveStatus::kIterationLimit);
    EXPECT_EQ(report.iterations, 0);
  }
}

// Masses, stiffnesses and lever arms of many orders of magnitude, each of them legal: their H in
// doubles need not be positive definite.
ProblemArrays OfManyOrders(uint64_t seed, const TreesInContact& parameters) {
  Random random(seed);
  ProblemArrays arrays = RandomTreesInContact(seed, parameters);
  auto entry = arrays.trees.dynamics_matrix.begin();
  for (const uint32_t dofs : arrays.trees.dofs) {
    const double mass = LogUniform(&random, 1e-6, 1e6);
    for (uint32_t i = 0; i < dofs * dofs; ++i) *entry++ *= mass;
  }
  for (double& k : arrays.contacts.law.stiffness) k = LogUniform(&random, 1e-3, 1e15);
  arrays.regularization.sigma = LogUniform(&random, 1e-9, 1);
  arrays.regularization.beta = UniformInt(&random, 0, 1) == 1 ? 0.0 : LogUniform(&random, 1e-4, 10);
  const std::vector<int64_t> starts = JacobianStarts(arrays);
  for (size_t contact = 0; contact + 1 < starts.size(); ++contact) {
    const double lever = LogUniform(&random, 1e-6, 1e6);
    for (int64_t i = starts[contact]; i < starts[contact + 1]; ++i) {
      arrays.contacts.jacobian[i] *= lever;
    }
  }
  return arrays;
}

void ExpectAnswered(const TreesInContact& parameters, int seeds) {
  for (int seed = 0; seed < seeds; ++seed) {
    const ContactProblem problem = Checked(OfManyOrders(seed, parameters));
    for (const NewtonMethod newton : {NewtonMethod::kAccelerated, NewtonMethod::kPlain}) {
      const ContactSolution guess = Solve(problem, {.max_iterations = 0, .newton = newton});
      const ContactSolution solution = Solve(problem, {.newton = newton});
      for (size_t i = 0; i < solution.islands.size(); ++i) {
        EXPECT_NE(solution.islands[i].status, SolveStatus::kNumericalFailure) << "seed " << seed;
        EXPECT_LE(solution.islands[i].cost, guess.islands[i].cost) << "seed " << seed;
      }
    }
  }
}

TEST(SapSolverTest, IslandsWhoseHessianRoundingMakesIndefiniteAreAnswered) {
  ExpectAnswered({.trees = 8, .contacts = 20}, 200);
}

TEST(SapSolverTest, SingleBodiesWhoseHessianRoundingMakesIndefiniteAreAnswered) {
  ExpectAnswered({.trees = 1, .contacts = 3, .min_dofs = 6, .max_dofs = 6, .world_share = 1}, 400);
}

// A unit point mass that moves sideways and away from the ground. The larger mu, the more friction
// pulls at it all the same.
TEST(SapSolverTest, FrictionOfAnySizeIsAnsweredRightlyOrNotAtAll) {
  for (int exponent = 0; exponent <= 308; exponent += 4) {
    ProblemArrays arrays;
    arrays.AddTree(Eigen::Matrix3d::Identity(), Eigen::Vector3d(-5, 0, 1));
    arrays.AddContact(0, Eigen::Matrix3d::Identity(),
                      {.signed_distance = 0, .friction = std::pow(10.0, exponent)});
    arrays.contacts.law.regularization_t = {0.25};
    arrays.contacts.law.regularization_n = {0.25};
    const ContactSolution solution = Solve(Checked(arrays));
    ASSERT_EQ(solution.islands.size(), 1u);
    if (solution.islands[0].status == SolveStatus::kNumericalFailure) {
      EXPECT_GE(exponent, 150);
      continue;
    }
    // The impulse of the optimum, which satisfies gamma = P(-(v* + gamma) / R) with A = 1.
    const Vector3L v{solution.velocity[0], solution.velocity[1], solution.velocity[2]};
    const Vector3L gamma = NearestInCone(-4 * v, 0.25L, 0.25L, std::pow(10.0L, exponent));
    const Vector3L balance = v - Vector3L(-5, 0, 1) - gamma;
    EXPECT_LE(static_cast<double>(balance.norm()), 1e-5) << "mu = 1e" << exponent;
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(solution.impulse[i], static_cast<double>(gamma[i]), 1e-5)
          << "mu = 1e" << exponent;
    }
  }
}

}  // namespace
}  // namespace sap::test
