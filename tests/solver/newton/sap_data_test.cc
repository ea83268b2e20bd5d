#include "solver/newton/sap_data.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/solver/prepared_problem.h"
#include "tests/support/dense_problem.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

// A problem with constraints of every kind as one island, evaluated at its guess.
class EvaluateTest : public ::testing::TestWithParam<int> {
 protected:
  EvaluateTest()
      : arrays_(RandomConstraintsOfEveryKind(GetParam())), dense_(arrays_), p_(arrays_, false) {
    norms_ = Evaluate(p_.View(0), &p_.data, &p_.scratch);
    unit_ = p_.model.constants(0).mass_unit;
    v_ = p_.Velocity();
  }
  // The gradient in the order and the unit of the problem.
  VectorL Gradient() const {
    VectorL gradient = VectorL::Zero(v_.size());
    for (int slot = 0; slot < p_.graph.num_slots(); ++slot) {
      gradient.segment(p_.StartInProblem(slot), p_.graph.dofs()[slot]) =
          unit_ * p_.Of(p_.data.gradient, slot);
    }
    return gradient;
  }
  static long double ScaledNorm(const MatrixL& A, const VectorL& p) {
    return p.cwiseProduct(A.diagonal().cwiseSqrt().cwiseInverse()).norm();
  }

  const ProblemArrays arrays_;
  const DenseProblem dense_;
  PreparedProblem p_;
  IslandNorms norms_;
  double unit_;
  VectorL v_;
};

TEST_P(EvaluateTest, CostIsThatOfTheDefinition) {
  const auto size = static_cast<double>(dense_.CostSize(v_));
  EXPECT_NEAR(unit_ * norms_.cost, static_cast<double>(dense_.Cost(v_)), 1e-11 * size);
  EXPECT_GE(norms_.cost_size, std::abs(norms_.cost));
}

TEST_P(EvaluateTest, GradientIsThatOfTheDefinition) {
  const VectorL expected = dense_.Gradient(v_);
  const VectorL gradient = Gradient();
  const long double size = ScaledNorm(dense_.A(), expected);
  EXPECT_LE(ScaledNorm(dense_.A(), gradient - expected), 1e-11L * size);
  EXPECT_NEAR(norms_.gradient * std::sqrt(unit_), static_cast<double>(size),
              1e-11 * static_cast<double>(size));
}

// Knows nothing of impulses: the cost alone, in 80-bit arithmetic.
TEST_P(EvaluateTest, GradientIsTheDifferenceOfTheCost) {
  constexpr long double kDifference = 1e-7L;
  const VectorL gradient = Gradient();
  for (int i = 0; i < v_.size(); ++i) {
    const VectorL step = kDifference * VectorL::Unit(v_.size(), i);
    const long double slope = (dense_.Cost(v_ + step) - dense_.Cost(v_ - step)) / (2 * kDifference);
    // Differences are good to their step times the curvature, or to the rounding of the cost.
    EXPECT_NEAR(static_cast<double>(gradient[i]), static_cast<double>(slope),
                1e-6 * static_cast<double>(gradient.cwiseAbs().maxCoeff()));
  }
}

TEST_P(EvaluateTest, NormsOfMomentumAndImpulseAreThoseOfTheDefinition) {
  VectorL v = v_;
  for (int tree = 0; tree < p_.problem.num_trees(); ++tree) {
    if (p_.graph.islands().slot_of_tree()[tree] >= 0) continue;
    v.segment(p_.problem.velocity_start()[tree], p_.problem.dofs()[tree]).setZero();
  }
  const auto momentum = static_cast<double>(ScaledNorm(dense_.A(), dense_.A() * v));
  const VectorL impulse = dense_.A() * (v_ - dense_.v_star()) - dense_.Gradient(v_);
  EXPECT_NEAR(norms_.momentum * std::sqrt(unit_), momentum, 1e-12 * momentum);
  const auto size = static_cast<double>(ScaledNorm(dense_.A(), impulse));
  EXPECT_NEAR(norms_.impulse * std::sqrt(unit_), size, 1e-11 * size);
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, EvaluateTest, ::testing::Range(0, 30));

// Chunks of slots, pairs, rows and constraints all have a remainder.
TEST(EvaluateOnThreadsTest, IsTheSameBitsOnAnyNumberOfThreads) {
  const ProblemArrays arrays = RandomConstraintsOfEveryKind(
      1, {.contacts = {.trees = 150, .contacts = 1500, .max_dofs = 6}, .rows = 1100});
  const auto evaluate = [&](TaskArena* arena) {
    PreparedProblem p(arrays, false);
    const IslandNorms norms = Evaluate(p.View(0, arena), &p.data, &p.scratch);
    return std::pair(norms.cost, p.data.gradient);
  };
  const auto alone = evaluate(nullptr);
  for (const int threads : {2, 3, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    EXPECT_EQ(evaluate(&arena), alone) << threads << " threads";
  }
}

}  // namespace
}  // namespace sap::test
