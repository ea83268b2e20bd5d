// Derivatives of problems whose trees are given in parts: against the same problem given whole,
// against differences, and of both modes against each other.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "solver/solve.h"
#include "tests/solver/differentials.h"
#include "tests/support/random_problem.h"
#include "tests/support/tree_parts.h"

namespace sap::test {
namespace {

constexpr SolverOptions kTightest{.relative_tolerance = 1e-11};

// Contacts between trees and with the world, and rows across trees, every other one-sided.
ProblemArrays Whole(int seed) {
  ProblemArrays arrays = RandomTreesInContact(
      seed, {.trees = 3 + seed % 3, .contacts = 5 + seed, .min_dofs = 2, .max_dofs = 13});
  Random random(seed);
  const auto velocities = static_cast<int>(arrays.trees.free_motion_velocity.size());
  for (int row = 0; row < 1 + seed; ++row) {
    const int i = UniformInt(&random, 0, velocities - 2);
    const int j = UniformInt(&random, i + 1, velocities - 1);
    arrays.AddRow({static_cast<uint32_t>(i), static_cast<uint32_t>(j)},
                  {1, Uniform(&random, -1, 1)});
    arrays.rows.stiffness.push_back(LogUniform(&random, 3, 12));
    arrays.rows.force_lower.push_back(row % 2 == 0 ? 0 : -HUGE_VAL);
  }
  return arrays;
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, const char* name) {
  SCOPED_TRACE(name);
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const double value : b) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-7 * largest) << i;
}

class CoupledDerivativesTest : public testing::TestWithParam<int> {};

TEST_P(CoupledDerivativesTest, GradientsAreThoseOfTheWhole) {
  const ProblemArrays whole = Whole(GetParam());
  const ContactProblem of_whole = Checked(whole);
  Random random(GetParam());
  const RandomCotangent cotangent(of_whole, &random);
  const Cotangent view = cotangent.View();
  for (const DelassusRule rule : {DelassusRule::kFull, DelassusRule::kDiagonal}) {
    ProblemArrays arrays = whole;
    arrays.regularization.rule = rule;
    const Gradient expected = Differentiate(Checked(arrays), kTightest, {&view, 1}).gradients[0];
    arrays.trees.dynamics_matrix = expected.problem.dynamics_matrix;
    arrays.contacts.jacobian = expected.problem.jacobian;
    for (const std::vector<int>& sizes : {std::vector<int>{1}, {3}, {2, 5, 1}}) {
      ProblemArrays parts = InParts(whole, sizes);
      parts.regularization.rule = rule;
      const Derivatives derivatives = Differentiate(Checked(parts), kTightest, {&view, 1});
      const ProblemDifferential& gradient = derivatives.gradients[0].problem;
      for (const AdjointStatus status : derivatives.adjoint_status) {
        EXPECT_EQ(status, AdjointStatus::kDifferentiated);
      }
      ProblemArrays cut = InParts(arrays, sizes);
      for (double& value : cut.trees.coupling_block) value *= 2;  // A_ab and A_ba
      ExpectNear(gradient.dynamics_matrix, cut.trees.dynamics_matrix, "dynamics_matrix");
      ExpectNear(gradient.coupling_block, cut.trees.coupling_block, "coupling_block");
      ExpectNear(gradient.jacobian, cut.contacts.jacobian, "jacobian");
      ExpectNear(gradient.row_coefficients, expected.problem.row_coefficients, "coefficient");
      ExpectNear(gradient.v_star, expected.problem.v_star, "v*");
      ExpectNear(gradient.w, expected.problem.w, "w");
      ExpectNear(derivatives.gradients[0].applied_impulse, expected.applied_impulse, "impulse");
    }
  }
}

TEST_P(CoupledDerivativesTest, BothModesAreTransposes) {
  const int seed = GetParam();
  const ContactProblem problem = Checked(InParts(Whole(seed), {3}));
  for (const bool hold_delassus : {false, true}) {
    ExpectModesAreTransposes(problem, seed, kTightest, hold_delassus);
  }
}

// Where a step crosses a kink two sizes of steps disagree, and nothing is tested.
TEST(CouplingGradientTest, GradientsByCouplingsAreWhatDifferencesOfSolutionsSay) {
  int tested = 0;
  for (int seed = 0; seed < 8; ++seed) {
    const ProblemArrays arrays = InParts(Whole(seed), {3});
    const ContactProblem problem = Checked(arrays);
    Random random(seed);
    const RandomCotangent cotangent(problem, &random);
    const Cotangent view = cotangent.View();
    std::vector<double> direction;
    for (const double value : arrays.trees.coupling_block) {
      direction.push_back(value * Uniform(&random, -1, 1));
    }
    const auto loss = [&](double h) {
      ProblemArrays moved = arrays;
      for (size_t i = 0; i < direction.size(); ++i) {
        moved.trees.coupling_block[i] += h * direction[i];
      }
      return Dot(view, Solve(Checked(moved), {.relative_tolerance = 1e-14}));
    };
    const auto difference = [&](double h) {
      return static_cast<double>((loss(h).value - loss(-h).value) / (2 * h));
    };
    constexpr double kStep = 1e-6, kNoise = 1e-13;
    const double coarse = difference(2 * kStep), fine = difference(kStep);
    Product product;
    product.Add(direction,
                Differentiate(problem, kTightest, {&view, 1}).gradients[0].problem.coupling_block);
    const double tolerance = 1e-6 * static_cast<double>(product.size) +
                             kNoise / kStep * static_cast<double>(loss(0).size);
    if (std::abs(coarse - fine) > tolerance) continue;
    EXPECT_NEAR(static_cast<double>(product.value), fine, tolerance) << "seed " << seed;
    EXPECT_GT(std::abs(fine), 10 * tolerance);
    ++tested;
  }
  EXPECT_GE(tested, 4);
}

// A row on the first of two coupled velocities, A = [[2, c], [c, 2]], W = (A^-1)_00, R = s w:
//
//   gamma = (R dt u - v*_0) / (R + W),   dv/ds = A^-1 e_0 w (dt u W + v*_0) / (R + W)^2
//
// with w = W, or 1/2 by the diagonal of A.
TEST(CoupledRowTest, DerivativesBySlipParameterAreThoseOfTheClosedForm) {
  constexpr double kCoupling = 0.7, kSlip = 0.5, kForce = 20;
  const double determinant = 4 - kCoupling * kCoupling;
  const double W = 2 / determinant;
  for (const DelassusRule rule : {DelassusRule::kFull, DelassusRule::kDiagonal}) {
    ProblemArrays arrays;
    arrays.regularization.rule = rule;
    arrays.AddTree(Eigen::MatrixXd::Constant(1, 1, 2), Eigen::VectorXd::Constant(1, 1.0));
    arrays.AddTree(Eigen::MatrixXd::Constant(1, 1, 2), Eigen::VectorXd::Constant(1, -0.5));
    arrays.trees.coupled_a = {1};
    arrays.trees.coupled_b = {0};
    arrays.trees.coupling_block = {kCoupling};
    arrays.AddRow({0}, {1});
    arrays.rows.slip_parameter = {kSlip};
    arrays.rows.force_offset = {kForce};
    const ContactProblem problem = Checked(arrays);
    ProblemDifferential direction;
    direction.Reset(problem);
    direction.rows[0].slip_parameter = 1;
    const std::vector<double> unit{1, 0};
    const Cotangent cotangent{.velocity = unit};
    const Derivatives derivatives =
        Differentiate(problem, kTightest, {&cotangent, 1}, {&direction, 1});
    const double w = rule == DelassusRule::kFull ? W : 0.5;
    const double R = kSlip * w;
    const double dgamma = w * (arrays.time_step * kForce * W + 1) / ((R + W) * (R + W));
    EXPECT_NEAR(derivatives.tangents[0].velocity[0], W * dgamma, 1e-12);
    EXPECT_NEAR(derivatives.tangents[0].velocity[1], -kCoupling / determinant * dgamma, 1e-12);
    EXPECT_NEAR(derivatives.gradients[0].problem.rows[0].slip_parameter, W * dgamma, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CoupledDerivativesTest, testing::Range(0, 8));

}  // namespace
}  // namespace sap::test
