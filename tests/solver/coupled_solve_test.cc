// Problems whose trees are given in parts have the answer of the same problem given whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "solver/solve.h"
#include "tests/support/random_problem.h"
#include "tests/support/tree_parts.h"

namespace sap::test {
namespace {

constexpr double kTight = 1e-11;

double Largest(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  const double scale = Largest(a);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * scale) << i;
}

class TreesInPartsTest : public ::testing::TestWithParam<int> {
 protected:
  static ProblemArrays Whole() {
    const int seed = GetParam();
    ProblemArrays arrays = RandomTreesInContact(
        seed, {.trees = 3 + seed % 5, .contacts = 6 + 2 * seed, .min_dofs = 1, .max_dofs = 13});
    Random random(seed);
    const auto velocities = static_cast<uint32_t>(arrays.trees.free_motion_velocity.size());
    for (int row = 0; row < seed; ++row) {
      const uint32_t i = UniformInt(&random, 0, static_cast<int>(velocities) - 2);
      const uint32_t j =
          UniformInt(&random, static_cast<int>(i) + 1, static_cast<int>(velocities) - 1);
      arrays.AddRow({i, j}, {1, Uniform(&random, -1, 1)});
      arrays.rows.stiffness.push_back(LogUniform(&random, 3, 12));
      arrays.rows.force_lower.push_back(row % 2 == 0 ? 0 : -HUGE_VAL);
    }
    return arrays;
  }
};

TEST_P(TreesInPartsTest, VelocitiesAndImpulsesAreThoseOfTheWhole) {
  const ProblemArrays whole = Whole();
  const ContactSolution expected = Solve(Checked(whole), {.relative_tolerance = kTight});
  for (const std::vector<int>& sizes : {std::vector<int>{1}, {3}, {6}, {2, 5, 1}}) {
    for (const NewtonMethod newton : {NewtonMethod::kAccelerated, NewtonMethod::kPlain}) {
      const ContactSolution solution =
          Solve(Checked(InParts(whole, sizes)), {.relative_tolerance = kTight, .newton = newton});
      ExpectNear(expected.velocity, solution.velocity, 1e-9);
      ExpectNear(expected.impulse, solution.impulse, 1e-8);
      ExpectNear(expected.row_impulse, solution.row_impulse, 1e-8);
      ExpectNear(expected.delassus_estimate, solution.delassus_estimate, 1e-12);
      EXPECT_NEAR(solution.cost, expected.cost, 1e-10 * std::abs(expected.cost));
      EXPECT_EQ(solution.islands.size(), expected.islands.size());
    }
  }
}

TEST_P(TreesInPartsTest, SweepsAloneLowerTheCostTowardsThatOfTheWhole) {
  const ProblemArrays whole = Whole();
  const double optimum = Solve(Checked(whole), {.relative_tolerance = kTight}).cost;
  const ContactProblem parts = Checked(InParts(whole, {3}));
  double last = HUGE_VAL;
  for (const int sweeps : {0, 1, 4, 16, 64}) {
    const double cost =
        Solve(parts, {.max_iterations = sweeps, .newton = NewtonMethod::kGaussSeidel}).cost;
    EXPECT_LE(cost, last * (1 + 1e-12));
    EXPECT_GE(cost, optimum * (1 - 1e-10));
    last = cost;
  }
}

TEST_P(TreesInPartsTest, MassesTimesAPowerOfTwoChangeNoBitOfTheVelocity) {
  ProblemArrays arrays = InParts(Whole(), {3});
  const ContactSolution before = Solve(Checked(arrays));
  for (std::vector<double>* masses : {&arrays.trees.dynamics_matrix, &arrays.trees.coupling_block,
                                      &arrays.contacts.law.stiffness, &arrays.rows.stiffness}) {
    for (double& value : *masses) value *= 0x1p-21;
  }
  const ContactSolution after = Solve(Checked(arrays));
  EXPECT_EQ(after.velocity, before.velocity);
  for (size_t i = 0; i < before.islands.size(); ++i) {
    EXPECT_EQ(after.islands[i].iterations, before.islands[i].iterations);
  }
}

TEST_P(TreesInPartsTest, ACertificateOfALooseSolveBoundsItsErrorInTheNormOfTheWhole) {
  const ProblemArrays whole = Whole();
  const ContactSolution optimum = Solve(Checked(whole), {.relative_tolerance = kTight});
  const ContactProblem parts = Checked(InParts(whole, {3}));
  for (const int iterations : {0, 1, 2}) {
    const ContactSolution solution = Solve(parts, {.max_iterations = iterations});
    double gap = 0;
    for (const IslandReport& report : solution.islands) gap += report.optimality_gap_bound;
    EXPECT_LE(solution.cost - optimum.cost, gap * (1 + 1e-9) + 1e-9 * optimum.cost);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, TreesInPartsTest, ::testing::Range(0, 12));

TEST(CoupledSolveTest, CoupledTreesThatNothingTouchesAreAnIslandAtRestInFreeMotion) {
  Random random(5);
  ProblemArrays whole;
  whole.AddTree(RandomDynamicsMatrix(&random, 7, 1, 2), UniformVector(&random, 7, -1, 1));
  whole.trees.guess_velocity.assign(7, 3.0);
  const ContactSolution solution = Solve(Checked(InParts(whole, {3})));
  ASSERT_EQ(solution.islands.size(), 1u);
  EXPECT_EQ(solution.islands[0].iterations, 0);
  EXPECT_EQ(solution.islands[0].status, SolveStatus::kConverged);
  EXPECT_EQ(solution.velocity, whole.trees.free_motion_velocity);
  EXPECT_EQ(solution.island_of_tree, (std::vector<int32_t>{0, 0, 0}));
}

// A stiff body of two masses that are pushed together: the residual weighs its rigid motion little.
TEST(CoupledSolveTest, AStiffBodyIsSolvedInTheNormOfItsWholeMatrix) {
  constexpr double kStiffness = 1e10;
  ProblemArrays arrays;
  for (int tree = 0; tree < 2; ++tree) {
    arrays.AddTree(Eigen::MatrixXd::Constant(1, 1, 1 + kStiffness), Eigen::VectorXd::Ones(1));
  }
  arrays.trees.coupled_a = {1};
  arrays.trees.coupled_b = {0};
  arrays.trees.coupling_block = {-kStiffness};
  arrays.contacts.parts = {1};
  arrays.contacts.part_tree = {0};
  arrays.contacts.jacobian = {0, 0, -1};
  arrays.contacts.law.signed_distance = {0};
  arrays.contacts.law.stiffness = {1e12};
  arrays.contacts.law.relaxation_time = {0};
  arrays.contacts.law.friction = {0};
  // Two masses move as one: 2 (v - 1) = -gamma, gamma = v / R_n.
  const double w = (1 + kStiffness) / (1 + 2 * kStiffness) / 3;
  const double R_n = std::max(w / (4 * M_PI * M_PI), 1 / (0.01 * 1e12 * 0.01));
  const double v = 2 * R_n / (1 + 2 * R_n);
  const ContactSolution solution = Solve(Checked(arrays));
  // The tolerance is relative to v* = 1.
  EXPECT_NEAR(solution.velocity[0], v, 1e-6);
  EXPECT_NEAR(solution.velocity[1], v, 1e-6);
  EXPECT_NEAR(solution.delassus_estimate[0], w, 1e-5 * w);
}

}  // namespace
}  // namespace sap::test
