#include "solver/laws/box_barrier.h"

#include <gtest/gtest.h>

#include <limits>

namespace sap::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

BoxBarrier At(double lower, double upper, double g, double u) {
  BoxBarrier row{BoundedRow::Parameters::Make(0, 0.5, lower, upper)};
  row.Start(g, 1e-3);
  row.u_l = row.has_l() ? u : 0;
  row.u_h = row.has_h() ? u : 0;
  return row;
}

// The linearized row and the linearized products hold after the step.
TEST(BoxBarrierTest, StepSolvesTheLinearizedRow) {
  for (const auto& [lower, upper] : {std::pair(-1.0, 2.0), {0.0, kInfinity}, {-kInfinity, 3.0}}) {
    const BoxBarrier row = At(lower, upper, 0.7, 0.3);
    const double e = 0.2, de = -0.4;
    const BoxBarrier::Products d{0.05, -0.02};
    const double target = row.Target(d) - row.Residual(e);
    const auto step = row.StepOf(row.Slope() * (target + de), d);
    const double after =
        row.p.R * (row.g + step.g) - (e + de) - (row.u_l + step.u_l) + (row.u_h + step.u_h);
    EXPECT_NEAR(after, 0, 1e-15);
    if (row.has_l()) {
      EXPECT_NEAR(row.slack_l * step.u_l + row.u_l * step.g, d.l, 1e-16);
    }
    if (row.has_h()) {
      EXPECT_NEAR(row.slack_h * step.u_h - row.u_h * step.g, d.h, 1e-16);
    }
  }
}

TEST(BoxBarrierTest, EqualBoundsGiveTheImpulse) {
  const BoxBarrier row = At(1.5, 1.5, 7, 1);
  EXPECT_EQ(row.g, 1.5);
  EXPECT_EQ(row.num_bounds(), 0);
  EXPECT_EQ(row.Slope(), 0);
  EXPECT_EQ(row.LargestStep({1, 1, 1}), kInfinity);
}

TEST(BoxBarrierTest, LargestStepMeetsTheFirstBound) {
  const BoxBarrier row = At(-1, 2, 0, 0.5);
  EXPECT_DOUBLE_EQ(row.LargestStep({4, 0, 0}), 0.5);
  EXPECT_DOUBLE_EQ(row.LargestStep({-4, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(row.LargestStep({0, -1, -2}), 0.25);
}

TEST(BoxBarrierTest, GapVanishesAtTheImpulseOfTheLawAlone) {
  const auto p = BoundedRow::Parameters::Make(0, 0.5, -1, 2);
  for (const double e : {-3.0, -0.5, 0.0, 0.4, 5.0}) {
    const double y = std::clamp(e / p.R, p.lower, p.upper);
    EXPECT_NEAR(BoxBarrier::GapAt(p, e, y).value, 0, 1e-15);
    for (const double g : {-1.0, 0.3, 2.0}) {
      if (g != y) {
        EXPECT_GT(BoxBarrier::GapAt(p, e, g).value, 0);
      }
    }
  }
}

}  // namespace
}  // namespace sap::test
