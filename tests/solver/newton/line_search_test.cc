#include "solver/newton/line_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/solver/dense_vectors.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A continuous increasing slope, linear between kinks.
struct KinkedSlope {
  double at_zero;
  std::vector<double> kinks;       // ascending, > 0
  std::vector<double> curvatures;  // one more than kinks, > 0
  int evaluations{0};

  LineSlope operator()(double alpha) {
    ++evaluations;
    double f = at_zero;
    double from = 0;
    size_t piece = 0;
    while (piece < kinks.size() && kinks[piece] < alpha) {
      f += curvatures[piece] * (kinks[piece] - from);
      from = kinks[piece++];
    }
    return {f + curvatures[piece] * (alpha - from), curvatures[piece]};
  }
};

KinkedSlope RandomKinks(Random* random, double steepest) {
  KinkedSlope slope{-LogUniform(random, 1e-9, 1e3), {}, {LogUniform(random, 1, steepest)}};
  double at = 0;
  for (int i = UniformInt(random, 0, 12); i > 0; --i) {
    at += LogUniform(random, 1e-8, 10);
    slope.kinks.push_back(at);
    slope.curvatures.push_back(LogUniform(random, 1, steepest));
  }
  return slope;
}

TEST(LineSearchTest, RootOfALinearSlopeIsFoundInTwoEvaluations) {
  KinkedSlope slope{-3, {}, {4}};
  EXPECT_DOUBLE_EQ(RootOfSlope(-3, 1e-12, slope), 0.75);
  KinkedSlope far{-3, {}, {0.5}};
  EXPECT_DOUBLE_EQ(RootOfSlope(-3, 1e-12, [&](double alpha) { return far(alpha); }), 6);
  EXPECT_LE(far.evaluations, 2);
}

TEST(LineSearchTest, FullStepIsTakenAtOnceWhereItIsTheRoot) {
  KinkedSlope slope{-2, {}, {2}};
  EXPECT_EQ(RootOfSlope(-2, 1e-10, [&](double alpha) { return slope(alpha); }), 1);
  EXPECT_EQ(slope.evaluations, 1);
}

TEST(LineSearchTest, RootAmongKinksIsFoundToTolerance) {
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    const double tolerance = i % 2 == 0 ? 1e-10 : 0.1;
    KinkedSlope slope = RandomKinks(&random, 1e6);
    const double alpha =
        RootOfSlope(slope.at_zero, tolerance, [&](double at) { return slope(at); });
    EXPECT_LE(slope.evaluations, 100);
    const double f = slope(alpha).first;
    // Accuracy ends where neighbouring alphas are.
    const double rounding = 8 * std::numeric_limits<double>::epsilon() * alpha * 1e6;
    EXPECT_LE(f, 1e-10 * -slope.at_zero + rounding);
    EXPECT_GE(f, -tolerance * -slope.at_zero - rounding);
    EXPECT_GT(alpha, 0);
  }
}

// The cost falls: its slope is not positive anywhere on the way, except for the far-side tolerance.
TEST(LineSearchTest, StepEndsOnTheNearSideOfTheRoot) {
  Random random(2);
  for (int i = 0; i < 3000; ++i) {
    KinkedSlope slope = RandomKinks(&random, 1e12);
    const double alpha = RootOfSlope(slope.at_zero, 0.1, [&](double at) { return slope(at); });
    EXPECT_LE(slope(alpha).first, 1e-10 * -slope.at_zero);
  }
}

TEST(LineSearchTest, RootAtTheEndsOfTheRangeIsFound) {
  for (const double root : {1e-12, 1e-6, 1e6, 1e12}) {
    const double alpha = RootOfSlope(-1, 1e-10, [&](double at) {
      return LineSlope{at / root - 1, 1 / root};
    });
    EXPECT_NEAR(alpha, root, 1e-9 * root);
  }
}

TEST(LineSearchTest, JumpOfTheSlopeEndsAtItsNearSide) {
  constexpr double kJump = 0.37;
  int evaluations = 0;
  const double alpha = RootOfSlope(-1, 1e-10, [&](double at) {
    ++evaluations;
    return at < kJump ? LineSlope{-1 + 0.1 * at, 0.1} : LineSlope{5 + at, 1};
  });
  EXPECT_LE(evaluations, 100);
  EXPECT_LT(alpha, kJump);
  EXPECT_NEAR(alpha, kJump, 1e-12);
}

TEST(LineSearchTest, WrongCurvatureCostsEvaluationsButNoAnswer) {
  for (const double curvature : {0.0, -1.0, 1e300, 1e-300, kNaN}) {
    const double alpha = RootOfSlope(-1, 1e-10, [&](double at) {
      return LineSlope{3 * at - 1, curvature};
    });
    EXPECT_NEAR(alpha, 1.0 / 3, 1e-9) << curvature;
  }
}

TEST(LineSearchTest, SlopeThatIsNoNumberCountsAsTooFar) {
  const double alpha = RootOfSlope(-1, 1e-10, [](double at) {
    return at > 0.25 ? LineSlope{kNaN, kNaN} : LineSlope{4.1 * at - 1, 4.1};
  });
  EXPECT_NEAR(alpha, 1 / 4.1, 1e-9);
  EXPECT_EQ(RootOfSlope(-1, 1e-10, [](double) { return LineSlope{kNaN, kNaN}; }), 0);
}

TEST(LineSearchTest, SlopeThatNeverRisesEndsFiniteAfterBoundedEvaluations) {
  int evaluations = 0;
  const double alpha = RootOfSlope(-1, 1e-10, [&](double) {
    ++evaluations;
    return LineSlope{-1, 0};
  });
  EXPECT_LE(evaluations, 100);
  EXPECT_TRUE(std::isfinite(alpha));
}

// A problem with constraints of every kind as one island at its guess, and a direction against its
// gradient.
class SearchAlongStepTest : public ::testing::TestWithParam<int> {
 protected:
  SearchAlongStepTest()
      : arrays_(RandomConstraintsOfEveryKind(GetParam())), dense_(arrays_), p_(arrays_, false) {
    Evaluate(p_.View(0), &p_.data, &p_.scratch);
    Random random(GetParam());
    const double length = LogUniform(&random, 1e-3, 10);
    for (size_t i = 0; i < p_.step.v.size(); ++i) {
      p_.step.v[i] = -length * Uniform(&random, 0.1, 1) * p_.data.gradient[i];
    }
    dv_ = VectorL::Zero(p_.problem.num_velocities());
    for (int slot = 0; slot < p_.graph.num_slots(); ++slot) {
      dv_.segment(p_.StartInProblem(slot), p_.graph.dofs()[slot]) = p_.Of(p_.step.v, slot);
    }
  }
  LineSearchResult Search(double tolerance) {
    return SearchAlongStep(p_.View(0), tolerance, StopToken(), p_.data, &p_.step, &p_.scratch);
  }
  long double SlopeAt(long double alpha) const {
    return dense_.Gradient(p_.Velocity() + alpha * dv_).dot(dv_);
  }

  const ProblemArrays arrays_;
  const DenseProblem dense_;
  PreparedProblem p_;
  VectorL dv_;
};

TEST_P(SearchAlongStepTest, EndsOnTheNearSideOfTheRootOfTheSlopeOfTheCost) {
  for (const double tolerance : {0.1, 1e-10}) {
    const LineSearchResult result = Search(tolerance);
    EXPECT_TRUE(result.descends);
    const long double at_zero = SlopeAt(0);
    const long double slope = SlopeAt(result.alpha);
    constexpr long double kRoundoff = 1e-10L;  // of the far side, and of the slopes
    EXPECT_LE(slope, 2 * kRoundoff * -at_zero);
    EXPECT_GE(slope, (tolerance + kRoundoff) * at_zero);
  }
}

TEST_P(SearchAlongStepTest, FillsInWhatTheStepChanges) {
  Search(0.1);
  const VectorL momentum = dense_.A() * dv_;
  const double unit = p_.model.constants(0).mass_unit;
  for (int slot = 0; slot < p_.graph.num_slots(); ++slot) {
    const VectorL of_slot = unit * p_.Of(p_.step.momentum, slot);
    const auto expected = momentum.segment(p_.StartInProblem(slot), of_slot.size());
    EXPECT_LE((of_slot - expected).norm(), 1e-14L * momentum.norm());
  }
  const IslandView view = p_.View(0);
  ForPoolsOf(view, [&](auto pool) {
    for (int i = 0; i < view.range(pool).end; ++i) {
      const MatrixL J = DenseJacobian(dense_, pool, view.layout(pool).order()[i]);
      const VectorL dv_c = ToDense(p_.step.pools[pool].v_c.At(i));
      const VectorL expected = J * dv_;
      for (int row = 0; row < NumRows(pool.kind()); ++row) {
        const int at = DenseRowOf(row, NumRows(pool.kind()));
        EXPECT_NEAR(static_cast<double>(dv_c[at]), static_cast<double>(expected[at]),
                    1e-14 * static_cast<double>(dv_.norm()));
      }
    }
  });
}

TEST_P(SearchAlongStepTest, RefusesADirectionUphill) {
  for (double& component : p_.step.v) component = -component;
  EXPECT_FALSE(Search(0.1).descends);
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, SearchAlongStepTest, ::testing::Range(0, 16));

}  // namespace
}  // namespace sap::test
