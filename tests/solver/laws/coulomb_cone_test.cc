#include "solver/laws/coulomb_cone.h"

#include <gtest/gtest.h>

#include "tests/solver/laws/law_properties.h"

namespace sap::test::coulomb_cone {
namespace {

constexpr int kCases = 2000;

// A contact with friction of every size, with and without adhesion, somewhere about its kinks.
template <int rows>
struct RandomCone {
  using Cone = CoulombCone<rows>;

  typename Cone::Parameters p;
  LawVector<rows> v;
  double speed;  // over which the law changes

  explicit RandomCone(Random* random) {
    LawVector<rows> mu{}, v_hat{};
    for (int axis = 0; axis < Cone::kAxes; ++axis) {
      mu[Cone::Cone::RowOf(axis)] = LogUniform(random, 0.1, 2);
    }
    const double R_t = LogUniform(random, 1e-3, 1e-1);
    const double R_n = LogUniform(random, 1e-3, 1e-1);
    const double c = UniformInt(random, 0, 1) == 0 ? 0 : Uniform(random, 0, 1);
    for (double& component : v_hat) component = Uniform(random, -1, 1);
    p.cone = Cone::Cone::Parameters::Make(R_t, R_n, mu, v_hat, c);
    speed = std::max(p.cone.rho, R_n);
    for (int row = 0; row < rows; ++row) v[row] = v_hat[row] + speed * Uniform(random, -2, 2);
    v[Cone::kNormal] += R_n * c;
  }
  typename Cone::Parameters By(CoulombLaw law, double value = 0) const {
    typename Cone::Parameters with = p;
    with.law = law;
    with.value = value;
    return with;
  }
  LawCase<Cone> Case(const typename Cone::Parameters& of) const {
    LawCase<Cone> c{};
    c.p = of;
    c.v = v;
    const auto point = Cone::At(of, v);
    c.cost_size = point.cost + 1;
    c.impulse_size = 10 / std::min(p.cone.rho, p.cone.R_n);
    for (int row = 0; row < rows; ++row) {
      c.step[row] = 1e-5 * speed;
      c.stiffness[row] = p.cone.mu[row] * p.cone.mu[row] * p.cone.inv_rho;
    }
    c.stiffness[Cone::kNormal] = p.cone.inv_R_n;
    return c;
  }
};

// Calls body(RandomCone<rows>) for many contacts of 3, 4 and 6 rows.
template <typename Body>
void ForRandomCones(Body&& body) {
  Random random(36);
  for (int i = 0; i < kCases; ++i) {
    body(RandomCone<3>(&random), &random);
    body(RandomCone<4>(&random), &random);
    body(RandomCone<6>(&random), &random);
  }
}

template <typename Cone>
bool SameRegion(const typename Cone::Parameters& p, const LawVector<Cone::kRows>& a,
                const LawVector<Cone::kRows>& b) {
  const auto at_a = Cone::At(p, a), at_b = Cone::At(p, b);
  return at_a.region == at_b.region && (at_a.p_n > 0) == (at_b.p_n > 0);
}

// |gamma_t| <= mu gamma_n against the slip, the normal a spring that friction does not change, and
// sticking as in the convex law: by the definition, component by component.
TEST(CoulombConeTest, TheExactImpulseIsThatOfItsDefinition) {
  ForRandomCones([](const auto& c, Random*) {
    using Cone = typename std::decay_t<decltype(c)>::Cone;
    const auto p = c.By(CoulombLaw::kExact);
    const auto& cone = p.cone;
    const double c_n = cone.adhesion_impulse;
    const double p_n = std::max(0.0, (cone.v_hat[2] - c.v[2]) / cone.R_n + c_n);
    double E2 = 0;
    for (int row = 0; row < Cone::kRows; ++row) {
      if (row != 2) E2 += std::pow(cone.mu[row] * (cone.v_hat[row] - c.v[row]), 2);
    }
    const double share = std::min(1.0, cone.rho * p_n / std::sqrt(E2));
    const auto gamma = Cone::At(p, c.v).gamma;
    const double tolerance = 1e-12 * (p_n + c_n + 1);
    for (int row = 0; row < Cone::kRows; ++row) {
      const double stick = cone.mu[row] * cone.mu[row] * (cone.v_hat[row] - c.v[row]) / cone.rho;
      EXPECT_NEAR(gamma[row], row == 2 ? p_n - c_n : share * stick, tolerance) << row;
    }
  });
}

// The derivative of the exact law is the symmetric matrix that is factored, and the coupling of
// friction to the normal velocity that is added to its products.
TEST(CoulombConeTest, TheExactDerivativeIsThatOfDifferences) {
  int tested = 0;
  ForRandomCones([&](const auto& c, Random*) {
    using Cone = typename std::decay_t<decltype(c)>::Cone;
    const auto p = c.By(CoulombLaw::kExact);
    const auto point = Cone::At(p, c.v);
    const auto G = Cone::Hessian(p, point);
    const auto coupling = Cone::Coupling(p, point);
    const double h = 1e-6 * c.speed;
    for (int k = 0; k < Cone::kRows; ++k) {
      for (const double by : {-2 * h, 2 * h}) {
        if (!SameRegion<Cone>(p, c.v, Moved<Cone>(c.v, k, by))) return;
      }
    }
    ++tested;
    for (int k = 0; k < Cone::kRows; ++k) {
      for (int i = 0; i < Cone::kRows; ++i) {
        const double entry = -Difference(
            [&](double by) { return Cone::At(p, Moved<Cone>(c.v, k, by)).gamma[i]; }, h);
        const double expected = G(i, k) + (k == Cone::kNormal ? coupling[i] : 0);
        EXPECT_NEAR(entry, expected, 1e-6 * (p.cone.inv_R_n + 4 * p.cone.inv_rho)) << i << k;
      }
    }
  });
  EXPECT_GT(tested, kCases);
}

TEST(CoulombConeTest, TheLaggedImpulseIsMinusTheDerivativeOfItsConvexCost) {
  int tested = 0;
  ForRandomCones([&](const auto& c, Random* random) {
    using Cone = typename std::decay_t<decltype(c)>::Cone;
    const auto p = c.By(CoulombLaw::kLagged, Uniform(random, 0, 3));
    const auto of = c.Case(p);
    const auto region = [](const auto& at, const auto& point) {
      return std::pair(point.region, point.p_n > 0 || at.value < 0);
    };
    tested += ExpectDerivativesMatchDifferences(of, region);
    ExpectConvexTowards(of, RandomlyMoved<Cone>(c.v, 3 * c.speed, random));
  });
  EXPECT_GT(tested, kCases);
}

TEST(CoulombConeTest, TheLaggedHessianIsPositiveSemidefiniteForEveryDualDirection) {
  ForRandomCones([](const auto& c, Random* random) {
    using Cone = typename std::decay_t<decltype(c)>::Cone;
    const auto of = c.Case(c.By(CoulombLaw::kLagged, Uniform(random, 0, 3)));
    const auto point = Cone::At(of.p, c.v);
    ExpectHessianBetweenZeroAnd(3, of,
                                Cone::Hessian(of.p, point, RandomDualDirection<Cone>(random)));
  });
}

// The exact law is the fixed point of both: with the values that it has itself they have its
// impulse.
TEST(CoulombConeTest, BothConvexLawsHaveTheExactImpulseWithTheValuesOfTheExactLaw) {
  ForRandomCones([](const auto& c, Random*) {
    using Cone = typename std::decay_t<decltype(c)>::Cone;
    const auto p = c.By(CoulombLaw::kExact);
    const auto point = Cone::At(p, c.v);
    const auto lagged = Cone::At(c.By(CoulombLaw::kLagged, Cone::NextBound(point)), c.v);
    const auto shifted = Cone::At(c.By(CoulombLaw::kShifted, Cone::NextShift(p, point)), c.v);
    const double tolerance = 1e-11 * (point.p_n + p.cone.adhesion_impulse + point.E / p.cone.rho);
    for (int row = 0; row < Cone::kRows; ++row) {
      EXPECT_NEAR(lagged.gamma[row], point.gamma[row], tolerance) << row;
      EXPECT_NEAR(shifted.gamma[row], point.gamma[row], tolerance) << row;
    }
  });
}

TEST(CoulombConeTest, WithoutAShiftTheShiftedLawIsTheConvexOne) {
  ForRandomCones([](const auto& c, Random*) {
    using Cone = typename std::decay_t<decltype(c)>::Cone;
    EXPECT_EQ(Cone::At(c.By(CoulombLaw::kShifted), c.v).gamma, Cone::Cone::At(c.p.cone, c.v).gamma);
  });
}

TEST(CoulombConeTest, TheBoundOnTheErrorOfTheImpulseCoversABoxOfVelocities) {
  ForRandomCones([](const auto& c, Random* random) {
    ExpectImpulseErrorCovers(c.Case(c.By(CoulombLaw::kExact)), c.speed, random);
  });
}

TEST(CoulombConeTest, FrictionlessContactsTakeNoDivision) {
  CoulombCone<3>::Parameters p{
      .cone = GeneralCone<3>::Parameters::Make(1e-3, 1e-2, {}, {0, 0, 0.1}, 0)};
  for (const CoulombLaw law : {CoulombLaw::kShifted, CoulombLaw::kLagged, CoulombLaw::kExact}) {
    p.law = law;
    const auto point = CoulombCone<3>::At(p, {1, 2, 0});
    EXPECT_EQ(point.gamma, (LawVector<3>{0, 0, p.cone.inv_R_n * 0.1}));
    const auto G = CoulombCone<3>::Hessian(p, point);
    EXPECT_EQ(G(0, 0), 0);
    EXPECT_EQ(G(2, 2), p.cone.inv_R_n);
    EXPECT_EQ(CoulombCone<3>::Coupling(p, point), LawVector<3>{});
  }
}

}  // namespace
}  // namespace sap::test::coulomb_cone
