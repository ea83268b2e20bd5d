#include "solver/laws/bounded_row.h"

#include "tests/solver/laws/law_properties.h"

namespace sap::test::bounded_row {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Bounds { kLower, kUpper, kBoth, kEqual };
constexpr Bounds kAllBounds[] = {Bounds::kLower, Bounds::kUpper, Bounds::kBoth, Bounds::kEqual};

template <typename Law>
LawCase<Law> CaseOf(const typename Law::Parameters& p, double v, double R) {
  const double impulse = (std::abs(p.v_hat) + std::abs(v)) / R;
  double bounds = 0;
  if constexpr (std::tuple_size_v < typename Law::DualDirection >> 0) {
    for (const double bound : {p.lower, p.upper}) {
      if (std::isfinite(bound)) bounds += std::abs(bound);
    }
  }
  return {.p = p,
          .v = {v},
          .step = {1e-3},
          .stiffness = {1 / R},
          .cost_size = R * (impulse + bounds) * (impulse + bounds),
          .impulse_size = impulse};
}

LawCase<BoundedRow> RandomRow(Bounds bounds, Random* random) {
  const double R = LogUniform(random, 1e-4, 1e2);
  const double v_hat = Uniform(random, -1, 1);
  const double lower = Uniform(random, -1, 0.5) / R;
  const double width = Uniform(random, 0.1, 1) / R;
  const double upper = bounds == Bounds::kEqual ? lower : lower + width;
  const auto p =
      BoundedRow::Parameters::Make(v_hat, R, bounds == Bounds::kUpper ? -kInfinity : lower,
                                   bounds == Bounds::kLower ? kInfinity : upper);
  return CaseOf<BoundedRow>(p, Uniform(random, -2, 2), R);
}

int RegionOf(const BoundedRow::Parameters& p, const BoundedRow::Point& point) {
  return (point.y > p.lower) + (point.y < p.upper ? 0 : 2);
}

double Gamma(const BoundedRow::Parameters& p, double v) { return BoundedRow::At(p, {v}).gamma[0]; }
double Cost(const BoundedRow::Parameters& p, double v) { return BoundedRow::At(p, {v}).cost; }
double G(const BoundedRow::Parameters& p, double v) {
  return BoundedRow::Hessian(p, BoundedRow::At(p, {v}))(0, 0);
}

// gamma maximizes g (v_hat - v) - R g^2 / 2 within the bounds, and the cost is the maximum.
TEST(BoundedRowTest, ImpulseMaximizesTheDualWithinTheBoundsAndTheCostIsItsMaximum) {
  Random random(1);
  for (int i = 0; i < 8000; ++i) {
    const LawCase<BoundedRow> c = RandomRow(kAllBounds[i % 4], &random);
    const auto point = BoundedRow::At(c.p, c.v);
    const long double g = point.gamma[0];
    const long double u = static_cast<long double>(c.p.v_hat) - c.v[0];
    EXPECT_GE(point.gamma[0], c.p.lower);
    EXPECT_LE(point.gamma[0], c.p.upper);
    const auto slope = static_cast<double>(u - c.p.R * g);
    const double rounding = 8 * kDoubleEpsilon * (std::abs(c.p.v_hat) + std::abs(c.v[0]));
    EXPECT_TRUE(point.gamma[0] == c.p.lower || slope >= -rounding);
    EXPECT_TRUE(point.gamma[0] == c.p.upper || slope <= rounding);
    const auto dual = static_cast<double>(g * u - 0.5L * c.p.R * g * g);
    EXPECT_NEAR(point.cost, dual, 8 * kDoubleEpsilon * c.cost_size);
  }
}

TEST(BoundedRowTest, DerivativesMatchDifferencesInEveryRegion) {
  Random random(2);
  for (const Bounds bounds : kAllBounds) {
    int tested[4] = {};
    for (int i = 0; i < 1000; ++i) {
      const LawCase<BoundedRow> c = RandomRow(bounds, &random);
      if (!ExpectDerivativesMatchDifferences(c, RegionOf)) continue;
      ++tested[RegionOf(c.p, BoundedRow::At(c.p, c.v))];
    }
    EXPECT_TRUE(bounds == Bounds::kUpper || tested[0] > 50);
    EXPECT_TRUE(bounds == Bounds::kEqual || tested[1] > 50);
    EXPECT_TRUE(bounds == Bounds::kLower || tested[3] > 50);
  }
}

TEST(BoundedRowTest, CostIsConvexAcrossTheBounds) {
  Random random(3);
  for (int i = 0; i < 8000; ++i) {
    LawCase<BoundedRow> c = RandomRow(kAllBounds[i % 4], &random);
    // Every other one starts at a bound.
    if (i % 8 < 4 && std::isfinite(c.p.lower)) c.v = {c.p.v_hat - c.p.R * c.p.lower};
    ExpectConvexTowards(c, RandomlyMoved<BoundedRow>(c.v, LogUniform(&random, 1e-12, 2), &random));
  }
}

TEST(BoundedRowTest, HessianIsBetweenZeroAndTwiceTheStiffnessForEveryDualDirection) {
  Random random(4);
  for (int i = 0; i < 8000; ++i) {
    const LawCase<BoundedRow> c = RandomRow(kAllBounds[i % 4], &random);
    const auto point = BoundedRow::At(c.p, c.v);
    ExpectHessianBetweenZeroAnd(1, c, BoundedRow::Hessian(c.p, point));
    const auto s = RandomDualDirection<BoundedRow>(&random);
    ExpectHessianBetweenZeroAnd(2, c, BoundedRow::Hessian(c.p, point, s));
  }
}

TEST(BoundedRowTest, LimitPushesOnlyWhereItIsViolated) {
  const auto p = BoundedRow::Parameters::Make(0.5, 0.25, 0, kInfinity);
  EXPECT_EQ(Gamma(p, 0.25), 1);
  EXPECT_EQ(Cost(p, 0.25), 0.125);
  EXPECT_EQ(G(p, 0.25), 4);
  EXPECT_EQ(Gamma(p, 0.75), 0);
  EXPECT_EQ(Cost(p, 0.75), 0);
  EXPECT_EQ(G(p, 0.75), 0);
}

// Dry friction of at most 2 N s: 1/2 R gamma^2 inside, then linear in the speed.
TEST(BoundedRowTest, DryFrictionOpposesMotionUpToItsBound) {
  const auto p = BoundedRow::Parameters::Make(0, 0.25, -2, 2);
  EXPECT_EQ(Gamma(p, 0.25), -1);
  EXPECT_EQ(Gamma(p, 3), -2);
  EXPECT_EQ(Gamma(p, -3), 2);
  EXPECT_EQ(Cost(p, 0.25), 0.125);
  EXPECT_EQ(Cost(p, 3), 5.5);
  EXPECT_EQ(Cost(p, -3), 5.5);
  EXPECT_EQ(G(p, 0.25), 4);
  EXPECT_EQ(G(p, 3), 0);
}

TEST(BoundedRowTest, EqualBoundsAreAConstantImpulse) {
  const auto p = BoundedRow::Parameters::Make(0.5, 0.25, 3, 3);
  for (const double v : {-1e6, 0.0, 1e6}) {
    const auto point = BoundedRow::At(p, {v});
    EXPECT_EQ(point.gamma[0], 3);
    EXPECT_EQ(point.cost, 3 * (0.5 - v) - 0.5 * 0.25 * 9);
    EXPECT_EQ(BoundedRow::Hessian(p, point)(0, 0), 0);
    EXPECT_EQ(BoundedRow::Hessian(p, point, {-1})(0, 0), 0);
    EXPECT_FALSE(BoundedRow::IsKinked(p, point));
    EXPECT_EQ(BoundedRow::StartDirection(p, point)[0], 0);
    EXPECT_EQ(BoundedRow::ImpulseError(p, point, {v}, {1})[0], 0);
  }
}

// A motor of force limit e with feed-forward u: clamp((v_hat - v) / R + u, -e, e), u within v_hat.
TEST(BoundedRowTest, BoundsHoldForTheImpulseWithItsFeedForward) {
  const double R = 0.25, u = 1.5, e = 2;
  const auto p = BoundedRow::Parameters::Make(0.5 + R * u, R, -e, e);
  EXPECT_EQ(Gamma(p, 0.5), u);
  EXPECT_EQ(Gamma(p, 0.5 + 0.125), u - 0.5);
  EXPECT_EQ(Gamma(p, 0), e);
}

TEST(BoundedRowTest, RowWithoutReachedBoundsIsBilateral) {
  Random random(5);
  for (int i = 0; i < 1000; ++i) {
    const double R = LogUniform(&random, 1e-6, 1e3), v_hat = Uniform(&random, -1, 1);
    const LawVector<1> v{Uniform(&random, -1, 1)};
    const auto bilateral = BilateralRow::Parameters::Make(v_hat, R);
    const auto expected = BilateralRow::At(bilateral, v);
    for (const double bound : {kInfinity, 1e10}) {
      const auto p = BoundedRow::Parameters::Make(v_hat, R, -bound, bound);
      const auto point = BoundedRow::At(p, v);
      EXPECT_EQ(point.gamma, expected.gamma);
      EXPECT_NEAR(point.cost, expected.cost, 4 * kDoubleEpsilon * expected.cost);
      EXPECT_EQ(BoundedRow::Hessian(p, point, {0.5})(0, 0), bilateral.inv_R);
      EXPECT_FALSE(BoundedRow::IsKinked(p, point));
    }
  }
}

TEST(BoundedRowTest, OnlyARowAtOneOfTwoBoundsIsKinked) {
  const auto kinked = [](double lower, double upper, double v) {
    const auto p = BoundedRow::Parameters::Make(0, 0.25, lower, upper);
    return BoundedRow::IsKinked(p, BoundedRow::At(p, {v}));
  };
  EXPECT_TRUE(kinked(-2, 2, 0.5));  // gamma = -2 to the bit
  EXPECT_TRUE(kinked(-2, 2, -3));
  EXPECT_FALSE(kinked(-2, 2, 0.499));
  EXPECT_FALSE(kinked(0, kInfinity, 3));
  EXPECT_FALSE(kinked(-kInfinity, 0, -3));
  EXPECT_FALSE(kinked(2, 2, 3));
}

// s = 1 at the upper bound and -1 at the lower one: the direction of the impulse itself.
TEST(BoundedRowTest, DualDirectionOfTheImpulseGivesThePlainHessian) {
  Random random(6);
  for (int i = 0; i < 4000; ++i) {
    const LawCase<BoundedRow> c = RandomRow(kAllBounds[i % 4], &random);
    const auto point = BoundedRow::At(c.p, c.v);
    const auto s = BoundedRow::StartDirection(c.p, point);
    EXPECT_LE(std::abs(s[0]), 1);
    EXPECT_NEAR(BoundedRow::Hessian(c.p, point, s)(0, 0), BoundedRow::Hessian(c.p, point)(0, 0),
                16 * kDoubleEpsilon / c.p.R);
  }
}

TEST(BoundedRowTest, DualDirectionAfterAStepInsideIsThatOfTheImpulseThere) {
  Random random(7);
  int tested = 0;
  while (tested < 1000) {
    const LawCase<BoundedRow> c = RandomRow(Bounds::kBoth, &random);
    const double dv = Uniform(&random, -0.3, 0.3);
    const auto before = BoundedRow::At(c.p, c.v);
    const auto after = BoundedRow::At(c.p, {c.v[0] + dv});
    if (!before.IsInside(c.p) || !after.IsInside(c.p)) continue;
    BoundedRow::DualDirection s{0.3};
    BoundedRow::UpdateDirection(c.p, before, {dv}, &s);
    EXPECT_NEAR(s[0], BoundedRow::StartDirection(c.p, after)[0], 1e-13);
    ++tested;
  }
}

// s |e| = e linearized in s and e together: s|e| + ds |e| + s t de = e + de.
TEST(BoundedRowTest, DualStepOfASaturatedRowSolvesTheLinearizedEquation) {
  const auto p = BoundedRow::Parameters::Make(0.5, 0.25, -1, 3);
  for (const double v : {-2.0, 2.0}) {
    const double e = 0.5 - v - 0.25 * 1;
    for (const double s : {-1.0, -0.4, 0.9, 1.0}) {
      for (const double dv : {-0.2, -1e-3, 1e-3, 0.2}) {
        BoundedRow::DualDirection next{s};
        BoundedRow::UpdateDirection(p, BoundedRow::At(p, {v}), {dv}, &next);
        const double t = e > 0 ? 1 : -1;
        const double expected = (e - dv + s * t * dv) / std::abs(e);
        EXPECT_NEAR(next[0], std::clamp(expected, -1.0, 1.0), 1e-14);
      }
    }
  }
}

// h / |e| = 1 / R at the bound to the bit, half of that at twice the error.
TEST(BoundedRowTest, HessianAtABoundIsNoneAlongTheImpulseAndTwiceTheStiffnessAgainstIt) {
  const auto p = BoundedRow::Parameters::Make(0, 0.25, -2, 2);
  for (const double side : {-1.0, 1.0}) {
    const auto point = BoundedRow::At(p, {-0.5 * side});
    EXPECT_EQ(BoundedRow::Hessian(p, point, {side})(0, 0), 0);
    EXPECT_EQ(BoundedRow::Hessian(p, point, {-side})(0, 0), 8);
    EXPECT_EQ(BoundedRow::Hessian(p, BoundedRow::At(p, {-side}), {-side})(0, 0), 4);
  }
}

TEST(BoundedRowTest, DualDirectionStaysInTheUnitInterval) {
  Random random(8);
  for (int i = 0; i < 8000; ++i) {
    const LawCase<BoundedRow> c = RandomRow(kAllBounds[i % 4], &random);
    auto s = RandomDualDirection<BoundedRow>(&random);
    const double dv = Uniform(&random, -1, 1) * LogUniform(&random, 1e-9, 1e9);
    BoundedRow::UpdateDirection(c.p, BoundedRow::At(c.p, c.v), {dv}, &s);
    EXPECT_LE(std::abs(s[0]), 1);
  }
}

// The middle of adjacent numbers is one of them.
TEST(BoundedRowTest, BoundsOneRoundingApartGiveFiniteHessiansAndDirections) {
  const double lower = 1, upper = std::nextafter(1.0, 2.0);
  for (const double first : {lower, upper}) {
    const double shift = first == lower ? 0 : kDoubleEpsilon;
    const auto p = BoundedRow::Parameters::Make(0, 1, lower + shift, upper + shift);
    for (const double y : {p.lower, p.upper, 0.0, 2.0}) {
      const auto point = BoundedRow::At(p, {-y});
      for (double s_before : {-1.0, 0.0, 1.0}) {
        BoundedRow::DualDirection s{s_before};
        EXPECT_GE(BoundedRow::Hessian(p, point, s)(0, 0), 0);
        EXPECT_LE(BoundedRow::Hessian(p, point, s)(0, 0), 2);
        BoundedRow::UpdateDirection(p, point, {0.5}, &s);
        EXPECT_LE(std::abs(s[0]), 1);
      }
      EXPECT_LE(std::abs(BoundedRow::StartDirection(p, point)[0]), 1);
    }
  }
}

TEST(BoundedRowTest, ImpulseErrorCoversEveryVelocityWithinTheError) {
  Random random(9);
  for (int i = 0; i < 4000; ++i) {
    const LawCase<BoundedRow> c = RandomRow(kAllBounds[i % 4], &random);
    ExpectImpulseErrorCovers(c, LogUniform(&random, 1e-12, 1), &random);
  }
}

TEST(BoundedRowTest, ScalesWithMassToTheBit) {
  Random random(10);
  for (int i = 0; i < 1000; ++i) {
    const LawCase<BoundedRow> c = RandomRow(kAllBounds[i % 4], &random);
    for (const double factor : {0x1p-60, 0x1p-3, 0x1p70}) {
      const auto heavier = BoundedRow::Parameters::Make(c.p.v_hat, c.p.R / factor,
                                                        c.p.lower * factor, c.p.upper * factor);
      ExpectScalesWithMass(c, heavier, factor, &random);
    }
  }
}

TEST(BoundedRowTest, ParametersBeyondDoublesAreNotRepresentable) {
  EXPECT_TRUE(BoundedRow::Parameters::Make(0, 1, -kInfinity, 0).IsRepresentable());
  EXPECT_FALSE(BoundedRow::Parameters::Make(0, 0, -1, 1).IsRepresentable());
  EXPECT_FALSE(BoundedRow::Parameters::Make(0, 1e-310, -1, 1).IsRepresentable());
  EXPECT_FALSE(BoundedRow::Parameters::Make(kInfinity, 1, -1, 1).IsRepresentable());
}

TEST(BilateralRowTest, ImpulseAndHessianAreThoseOfASpringWhateverTheVelocity) {
  Random random(11);
  const auto one_region = [](const auto&, const auto&) { return 0; };
  for (int i = 0; i < 1000; ++i) {
    const double R = LogUniform(&random, 1e-4, 1e2);
    const double v_hat = Uniform(&random, -1, 1), v = Uniform(&random, -2, 2);
    const auto c = CaseOf<BilateralRow>(BilateralRow::Parameters::Make(v_hat, R), v, R);
    const auto point = BilateralRow::At(c.p, c.v);
    EXPECT_NEAR(point.gamma[0], (v_hat - v) / R, 4 * kDoubleEpsilon * c.impulse_size);
    EXPECT_NEAR(point.cost, 0.5 * (v_hat - v) * (v_hat - v) / R, 8 * kDoubleEpsilon * c.cost_size);
    EXPECT_TRUE(ExpectDerivativesMatchDifferences(c, one_region));
    EXPECT_EQ(BilateralRow::Hessian(c.p, point, {})(0, 0), BilateralRow::Hessian(c.p, point)(0, 0));
    EXPECT_FALSE(BilateralRow::IsKinked(c.p, point));
    ExpectImpulseErrorCovers(c, LogUniform(&random, 1e-12, 1), &random);
  }
}

}  // namespace
}  // namespace sap::test::bounded_row
