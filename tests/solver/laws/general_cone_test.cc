#include "solver/laws/general_cone.h"

#include <type_traits>
#include <utility>

#include "solver/pools/friction_contacts.h"
#include "tests/solver/laws/law_properties.h"

namespace sap::test::general_cone {
namespace {

// A contact in the terms in which it is given.
template <int n>
struct Cone {
  using Law = GeneralCone<n>;

  double R_t{1e-3}, R_n{0.1};
  LawVector<n> mu{};
  LawVector<n> v_hat{};
  double c{0};  // adhesion [N s]

  typename Law::Parameters Parameters() const {
    return Law::Parameters::Make(R_t, R_n, mu, v_hat, c);
  }
  double rho() const { return R_t * mu[0] * mu[0]; }
  double kappa() const { return 1 / (R_n + rho()); }
  double Stiffness(int row) const {
    if (row == 2) return 1 / R_n;
    return mu[row] > 0 ? mu[row] * mu[row] / rho() : 0;
  }
  // The velocity at which the scaled velocities are e, with e_n in place of the normal. Along
  // axes without friction the contact moves at e.
  LawVector<n> VelocityFor(const LawVector<n>& e) const {
    LawVector<n> v;
    for (int row = 0; row < n; ++row) {
      v[row] = row == 2 || mu[row] == 0 ? v_hat[row] - e[row] : v_hat[row] - e[row] / mu[row];
    }
    v[2] += R_n * c;
    return v;
  }
  // Sizes of what e and e_n are computed from.
  double TangentialSize(const LawVector<n>& v) const {
    double size = 0;
    for (int row = 0; row < n; ++row) {
      if (row != 2) size += mu[row] * (std::abs(v_hat[row]) + std::abs(v[row]));
    }
    return size;
  }
  double NormalSize(const LawVector<n>& v) const {
    return std::abs(v_hat[2]) + std::abs(v[2]) + R_n * c;
  }
  // Size of an impulse, squared in the norm of R: no projection moves further than what is
  // projected.
  double EnergySize(const LawVector<n>& v) const {
    const double t = TangentialSize(v), normal = NormalSize(v);
    return (t > 0 ? t * t / rho() : 0) + normal * normal / R_n;
  }
  double NormR(const LawVector<n>& impulse) const {
    double square = 0;
    for (int row = 0; row < n; ++row) {
      if (impulse[row] != 0) square += impulse[row] * impulse[row] / Stiffness(row);
    }
    return std::sqrt(square);
  }
  LawCase<Law> CaseAt(const LawVector<n>& v) const {
    LawCase<Law> c_at;
    c_at.p = Parameters();
    c_at.v = v;
    const auto point = Law::At(c_at.p, v);
    const double e_n = v_hat[2] - v[2] + R_n * c;
    c_at.impulse_size = 0;
    for (int row = 0; row < n; ++row) {
      c_at.stiffness[row] = Stiffness(row);
      c_at.step[row] = row == 2      ? 1e-3 * (std::abs(e_n) + point.E)
                       : mu[row] > 0 ? 1e-3 * point.E / mu[row]
                                     : 1e-3;
      c_at.impulse_size += std::sqrt(Stiffness(row));
    }
    c_at.cost_size = EnergySize(v);
    c_at.impulse_size *= std::sqrt(c_at.cost_size);
    return c_at;
  }
};

template <int n>
Cone<n> RandomCone(Random* random, double range) {
  Cone<n> cone{.R_t = LogUniform(random, 1e-2 / range, 1),
               .R_n = LogUniform(random, 0.1 / range, 1)};
  for (int row = 0; row < n; ++row) {
    cone.v_hat[row] = Uniform(random, -1, 1);
    // A quarter of the axes beyond the first have no friction, and an eighth of the contacts.
    const bool has_friction = row == 0 || UniformInt(random, 0, 3) > 0;
    cone.mu[row] = has_friction ? LogUniform(random, 0.5 / range, 0.5 * range) : 0;
  }
  if (UniformInt(random, 0, 7) == 0) cone.mu = {};
  cone.mu[2] = 77;  // is not read
  if (UniformInt(random, 0, 1) == 0) cone.c = LogUniform(random, 1e-3, 10) / cone.R_n;
  return cone;
}

// e and e_n of like size in the norm of R^-1, so that all regions come up.
template <int n>
LawVector<n> RandomVelocity(const Cone<n>& cone, Random* random) {
  LawVector<n> e = RandomlyMoved<GeneralCone<n>>({}, 1, random);
  const double size = LogUniform(random, 0.1, 10);
  for (int row = 0; row < n; ++row) {
    e[row] *= size * std::sqrt(row == 2 ? cone.R_n : cone.mu[0] > 0 ? cone.rho() : 1);
  }
  return cone.VelocityFor(e);
}

// gamma in 80-bit arithmetic, knowing nothing of regions: for a p_n the best p_t is that of the
// tangents alone brought into the cone, and the slope in p_n of what is left is bisected.
template <int n>
std::array<long double, n> ImpulseByBisection(const Cone<n>& cone,
                                              const std::type_identity_t<LawVector<n>>& v) {
  const long double R_t = cone.R_t, R_n = cone.R_n, mu_1 = cone.mu[0], c = cone.c;
  const long double rho = R_t * mu_1 * mu_1;
  const long double e_n = static_cast<long double>(cone.v_hat[2]) - v[2] + R_n * c;
  std::array<long double, n> e{};
  long double E2 = 0;
  for (int row = 0; row < n; ++row) {
    if (row == 2) continue;
    e[row] = cone.mu[row] * (static_cast<long double>(cone.v_hat[row]) - v[row]);
    E2 += e[row] * e[row];
  }
  const long double E = std::sqrt(E2);
  const auto slope = [&](long double p_n) {
    return R_n * p_n - e_n - std::fmax(0.0L, E - rho * p_n);
  };
  long double low = 0, high = 0;
  if (slope(0) < 0) {
    for (high = 1; slope(high) < 0; high *= 2) {
    }
    for (int i = 0; i < 200; ++i) {
      const long double middle = (low + high) / 2;
      (slope(middle) < 0 ? low : high) = middle;
    }
  }
  std::array<long double, n> gamma{};
  const long double share = E > rho * high ? high / E : (rho > 0 ? 1 / rho : 0);
  for (int row = 0; row < n; ++row) gamma[row] = cone.mu[row] * share * e[row];
  gamma[2] = high - c;
  return gamma;
}

template <typename Rows>
class GeneralConeTest : public ::testing::Test {
 public:
  static constexpr int n = Rows::value;
  using Law = GeneralCone<n>;

  static int RegionOf(const typename Law::Parameters&, const typename Law::Point& point) {
    return static_cast<int>(point.region);
  }
  // The same coefficient on all axes.
  static Cone<n> Isotropic(double mu) {
    Cone<n> cone;
    cone.mu.fill(mu);
    return cone;
  }
  static typename Law::Point At(const Cone<n>& cone, const LawVector<n>& v) {
    return Law::At(cone.Parameters(), v);
  }
};

using NumbersOfRows =
    ::testing::Types<std::integral_constant<int, 3>, std::integral_constant<int, 4>,
                     std::integral_constant<int, 6>>;
TYPED_TEST_SUITE(GeneralConeTest, NumbersOfRows);

TYPED_TEST(GeneralConeTest, ImpulseMatchesBisectionInAllRegions) {
  constexpr int n = TestFixture::n;
  Random random(1);
  int seen[3] = {};
  for (int i = 0; i < 20000; ++i) {
    const auto cone = RandomCone<n>(&random, 1e3);
    const LawVector<n> v = RandomVelocity(cone, &random);
    const auto point = TestFixture::At(cone, v);
    const auto expected = ImpulseByBisection(cone, v);
    ++seen[static_cast<int>(point.region)];
    LawVector<n> error;
    for (int row = 0; row < n; ++row) {
      error[row] = static_cast<double>(point.gamma[row] - expected[row]);
      ASSERT_TRUE(error[row] == 0 || cone.Stiffness(row) > 0) << "row " << row;
    }
    ASSERT_LE(cone.NormR(error), 16 * kDoubleEpsilon * std::sqrt(cone.EnergySize(v)));
  }
  for (const int count : seen) EXPECT_GT(count, 1000);
}

// The cost is the maximum of g'(v_hat - v) - g'Rg / 2 over the shifted cone, which gamma attains.
TYPED_TEST(GeneralConeTest, CostIsTheMaximumOfTheDual) {
  constexpr int n = TestFixture::n;
  Random random(2);
  for (int i = 0; i < 10000; ++i) {
    const auto cone = RandomCone<n>(&random, 1e3);
    const LawVector<n> v = RandomVelocity(cone, &random);
    const auto g = ImpulseByBisection(cone, v);
    long double dual = 0;
    for (int row = 0; row < n; ++row) {
      if (g[row] == 0) continue;
      const long double u = static_cast<long double>(cone.v_hat[row]) - v[row];
      const long double mu_1 = cone.mu[0], mu = cone.mu[row];
      const long double R = row == 2 ? cone.R_n : cone.R_t * (mu_1 / mu) * (mu_1 / mu);
      dual += g[row] * u - g[row] * g[row] * R / 2;
    }
    ASSERT_NEAR(TestFixture::At(cone, v).cost, static_cast<double>(dual),
                32 * kDoubleEpsilon * cone.EnergySize(v));
  }
}

// p in the cone, q = R (p - y) in its dual, and p'q = 0.
TYPED_TEST(GeneralConeTest, ShiftedImpulseSatisfiesTheOptimalityConditionsOfTheProjection) {
  constexpr int n = TestFixture::n;
  Random random(3);
  for (int i = 0; i < 10000; ++i) {
    const auto cone = RandomCone<n>(&random, 10);
    const LawVector<n> v = RandomVelocity(cone, &random);
    const auto gamma = TestFixture::At(cone, v).gamma;
    const long double p_n = static_cast<long double>(gamma[2]) + cone.c;
    const long double q_n = cone.R_n * gamma[2] - (cone.v_hat[2] - static_cast<long double>(v[2]));
    long double p_t2 = 0, q_t2 = 0, product = p_n * q_n;
    for (int row = 0; row < n; ++row) {
      if (row == 2 || cone.mu[row] == 0) continue;
      const long double p = gamma[row];
      const long double q =
          p / cone.Stiffness(row) - (cone.v_hat[row] - static_cast<long double>(v[row]));
      p_t2 += p / cone.mu[row] * (p / cone.mu[row]);
      q_t2 += q * cone.mu[row] * (q * cone.mu[row]);
      product += p * q;
    }
    const double velocity = cone.TangentialSize(v) + cone.NormalSize(v);
    const double impulse = std::sqrt(cone.EnergySize(v) / cone.R_n);
    EXPECT_LE(std::sqrt(p_t2) - p_n, 16 * kDoubleEpsilon * impulse);
    EXPECT_LE(std::sqrt(q_t2) - q_n, 16 * kDoubleEpsilon * (1 + cone.rho() / cone.R_n) * velocity);
    EXPECT_LE(std::abs(product), 64 * kDoubleEpsilon * cone.EnergySize(v));
  }
}

TYPED_TEST(GeneralConeTest, DerivativesMatchDifferencesInEveryRegion) {
  constexpr int n = TestFixture::n;
  Random random(4);
  int tested[3] = {};
  for (int i = 0; i < 10000; ++i) {
    const auto cone = RandomCone<n>(&random, 10);
    const auto c = cone.CaseAt(RandomVelocity(cone, &random));
    if (!ExpectDerivativesMatchDifferences(c, TestFixture::RegionOf)) continue;
    ++tested[static_cast<int>(TestFixture::At(cone, c.v).region)];
  }
  for (const int count : tested) EXPECT_GT(count, 500);
}

TYPED_TEST(GeneralConeTest, CostIsConvexAndSmoothAcrossRegions) {
  constexpr int n = TestFixture::n;
  Random random(5);
  for (int i = 0; i < 10000; ++i) {
    const auto cone = RandomCone<n>(&random, 10);
    LawVector<n> v = RandomVelocity(cone, &random);
    // Half of them start at a boundary between regions.
    const auto point = TestFixture::At(cone, v);
    const double stick = cone.rho() > 0 ? cone.R_n * point.E / cone.rho() : 0;
    if (i % 4 == 0) v[2] = cone.v_hat[2] + cone.R_n * cone.c - stick;
    if (i % 4 == 1) v[2] = cone.v_hat[2] + cone.R_n * cone.c + point.E;
    const double distance = LogUniform(&random, 1e-12, 2);
    ExpectConvexTowards(cone.CaseAt(v),
                        RandomlyMoved<typename TestFixture::Law>(v, distance, &random));
  }
}

// With s: R_t G_perp <= 1 times a matrix of norm 2, and a projector in the norm of R.
TYPED_TEST(GeneralConeTest, HessianIsAtMostTheStiffnessAndThreeTimesItWithADualDirection) {
  using Law = typename TestFixture::Law;
  Random random(6);
  for (int i = 0; i < 10000; ++i) {
    const auto cone = RandomCone<TestFixture::n>(&random, 1e3);
    const auto c = cone.CaseAt(RandomVelocity(cone, &random));
    const auto point = Law::At(c.p, c.v);
    ExpectHessianBetweenZeroAnd(1, c, Law::Hessian(c.p, point));
    const auto s = RandomDualDirection<Law>(&random);
    ExpectHessianBetweenZeroAnd(3, c, Law::Hessian(c.p, point, s));
    ExpectNear(c, Law::Hessian(c.p, point, point.t), Law::Hessian(c.p, point));
  }
}

TYPED_TEST(GeneralConeTest, ImpulseErrorCoversEveryVelocityWithinTheError) {
  Random random(7);
  for (int i = 0; i < 10000; ++i) {
    const auto cone = RandomCone<TestFixture::n>(&random, 100);
    const auto c = cone.CaseAt(RandomVelocity(cone, &random));
    ExpectImpulseErrorCovers(c, LogUniform(&random, 1e-10, 10), &random);
  }
}

TYPED_TEST(GeneralConeTest, ScalesWithMassToTheBit) {
  Random random(8);
  for (int i = 0; i < 1000; ++i) {
    const auto cone = RandomCone<TestFixture::n>(&random, 1e3);
    const auto c = cone.CaseAt(RandomVelocity(cone, &random));
    for (const double factor : {0x1p-60, 0x1p-3, 0x1p70}) {
      auto heavier = cone;
      heavier.R_t /= factor;
      heavier.R_n /= factor;
      heavier.c *= factor;
      ExpectScalesWithMass(c, heavier.Parameters(), factor, &random);
    }
  }
}

// An axis in another unit, as an angle in place of an arc.
TYPED_TEST(GeneralConeTest, UnitOfAnAxisChangesItsOwnImpulseOnlyToTheBit) {
  constexpr int n = TestFixture::n;
  Random random(9);
  for (int i = 0; i < 2000; ++i) {
    const auto cone = RandomCone<n>(&random, 10);
    const LawVector<n> v = RandomVelocity(cone, &random);
    const int axis = n - 1 == 2 ? 1 : n - 1;
    auto other = cone;
    LawVector<n> other_v = v;
    other.mu[axis] /= 1024;
    other.v_hat[axis] *= 1024;
    other_v[axis] *= 1024;
    auto expected = TestFixture::At(cone, v);
    const auto point = TestFixture::At(other, other_v);
    expected.gamma[axis] /= 1024;
    EXPECT_EQ(point.gamma, expected.gamma);
    EXPECT_EQ(point.cost, expected.cost);
  }
}

TYPED_TEST(GeneralConeTest, ApexIsOpenWithFiniteHessians) {
  using Law = typename TestFixture::Law;
  for (const double mu : {0.0, 0.5, 1e8}) {
    auto cone = TestFixture::Isotropic(mu);
    for (const double c : {0.0, 2.0}) {
      cone.c = c;
      const auto p = cone.Parameters();
      const auto point = Law::At(p, cone.VelocityFor({}));
      LawVector<TestFixture::n> gamma{};
      gamma[2] = -c;
      EXPECT_EQ(point.region, ConeRegion::kOpen);
      EXPECT_EQ(point.gamma, gamma);
      EXPECT_EQ(Law::Hessian(p, point, {0.6}).entries, LawMatrix<TestFixture::n>().entries);
      EXPECT_EQ(Law::StartDirection(p, point), typename Law::DualDirection());
      EXPECT_FALSE(Law::IsKinked(p, point));
    }
  }
}

// max(y_n, 0) - c along the normal, nothing else, whatever the tangents do.
TYPED_TEST(GeneralConeTest, ContactWithoutFrictionIsAOneSidedRowWithAdhesion) {
  constexpr int n = TestFixture::n;
  using Law = typename TestFixture::Law;
  Random random(10);
  for (int i = 0; i < 1000; ++i) {
    Cone<n> cone{.R_t = LogUniform(&random, 1e-9, 1), .R_n = 0.25, .c = i % 2 == 0 ? 0.0 : 0.5};
    const LawVector<n> v = RandomlyMoved<Law>({}, 1, &random);
    const double gamma_n = std::max(-v[2] / 0.25 + cone.c, 0.0) - cone.c;
    const auto p = cone.Parameters();
    const auto point = Law::At(p, v);
    EXPECT_TRUE(p.IsRepresentable());
    LawMatrix<n> G;
    G(2, 2) = gamma_n > -cone.c || (cone.c == 0 && gamma_n > 0) ? 4 : 0;
    for (int row = 0; row < n; ++row) {
      EXPECT_NEAR(point.gamma[row], row == 2 ? gamma_n : 0, row == 2 ? 4 * kDoubleEpsilon : 0);
    }
    EXPECT_EQ(Law::Hessian(p, point).entries, G.entries);
    EXPECT_FALSE(Law::IsKinked(p, point));
    auto s = RandomDualDirection<Law>(&random);
    Law::UpdateDirection(p, point, v, &s);
    EXPECT_EQ(s, typename Law::DualDirection());
  }
}

// Adhesion holds up to c, then pulls with c: closed forms at u_n = -R_n c / 2 and -2 R_n c.
TYPED_TEST(GeneralConeTest, AdhesionHoldsUpToItsImpulseAndThenPullsWithIt) {
  auto cone = TestFixture::Isotropic(0.5);
  cone.R_n = 0.25;
  cone.c = 2;
  LawVector<TestFixture::n> v{};
  v[2] = 0.25;
  EXPECT_EQ(TestFixture::At(cone, v).gamma[2], -1);
  EXPECT_EQ(TestFixture::At(cone, v).region, ConeRegion::kStick);
  EXPECT_EQ(TestFixture::At(cone, v).cost, 0.125);
  v[2] = 1;
  EXPECT_EQ(TestFixture::At(cone, v).gamma[2], -2);
  EXPECT_EQ(TestFixture::At(cone, v).region, ConeRegion::kOpen);
  EXPECT_EQ(TestFixture::At(cone, v).cost, 2 * 1 - 0.5 * 0.25 * 4);
}

TYPED_TEST(GeneralConeTest, ContactIsKinkedFromTheSurfaceOfItsConeOn) {
  constexpr int n = TestFixture::n;
  using Law = typename TestFixture::Law;
  for (const double c : {0.0, 2.0}) {
    auto cone = TestFixture::Isotropic(0.5);
    cone.c = c;
    const auto kinked = [&](double E, double e_n) {
      LawVector<n> e{};
      e[n - 1 == 2 ? 1 : n - 1] = E;
      e[2] = e_n;
      const auto p = cone.Parameters();
      return Law::IsKinked(p, Law::At(p, cone.VelocityFor(e)));
    };
    const double boundary = cone.rho() / cone.R_n;  // of E, at e_n = 1
    EXPECT_TRUE(kinked(boundary * (1 + 1e-12), 1));
    EXPECT_TRUE(kinked(boundary * (1 - 1e-12), 1));
    EXPECT_FALSE(kinked(boundary * (1 - 1e-8), 1));
    EXPECT_TRUE(kinked(1, -0.5));
    EXPECT_FALSE(kinked(1, -2));
    EXPECT_FALSE(kinked(0, 1));
  }
}

// p_j / (mu_j p_n) of every axis, and the slip direction where it slides.
TYPED_TEST(GeneralConeTest, DualDirectionStartsAsTheShareOfTheConeRadius) {
  constexpr int n = TestFixture::n;
  using Law = typename TestFixture::Law;
  Random random(11);
  for (int i = 0; i < 5000; ++i) {
    const auto cone = RandomCone<n>(&random, 10);
    const auto p = cone.Parameters();
    const auto point = Law::At(p, RandomVelocity(cone, &random));
    const auto s = Law::StartDirection(p, point);
    EXPECT_LE(NormOf<Law>(s), 1 + 4 * kDoubleEpsilon);
    for (int row = 0; row < n; ++row) {
      if (row == 2) continue;
      const double radius = cone.mu[row] * (point.gamma[2] + cone.c);
      EXPECT_NEAR(s[row < 2 ? row : row - 1] * radius, point.gamma[row],
                  16 * kDoubleEpsilon * cone.mu[row] * (point.p_n + cone.c));
    }
  }
}

// Where p_n falls below 0.3 of itself, the radius of the cone is that of 0.3.
TYPED_TEST(GeneralConeTest, DualDirectionAfterAStepInStickIsThatOfTheImpulseThere) {
  using Law = typename TestFixture::Law;
  Random random(12);
  for (int tested = 0; tested < 1000;) {
    const auto cone = RandomCone<TestFixture::n>(&random, 10);
    const auto p = cone.Parameters();
    const auto v = RandomVelocity(cone, &random);
    const auto after_v = RandomVelocity(cone, &random);
    const auto before = Law::At(p, v), after = Law::At(p, after_v);
    if (before.region != ConeRegion::kStick || after.region != ConeRegion::kStick) continue;
    LawVector<TestFixture::n> dv;
    for (int row = 0; row < TestFixture::n; ++row) dv[row] = after_v[row] - v[row];
    auto s = RandomDualDirection<Law>(&random);
    Law::UpdateDirection(p, before, dv, &s);
    const auto expected = Law::StartDirection(p, after);
    const double share = after.p_n / std::max(after.p_n, 0.3 * before.p_n);
    for (size_t i = 0; i < s.size(); ++i) EXPECT_NEAR(s[i], share * expected[i], 1e-10);
    ++tested;
  }
}

// E s = e linearized in e and s together: s_next E + s t'de = e + de, brought back to the ball.
TYPED_TEST(GeneralConeTest, DualStepOfASlidingContactSolvesTheLinearizedEquation) {
  constexpr int n = TestFixture::n;
  using Law = typename TestFixture::Law;
  Random random(13);
  for (int tested = 0; tested < 1000;) {
    const auto cone = RandomCone<n>(&random, 10);
    const auto p = cone.Parameters();
    const auto v = RandomVelocity(cone, &random);
    const auto point = Law::At(p, v);
    if (point.region != ConeRegion::kSlide) continue;
    const auto dv = RandomlyMoved<Law>({}, LogUniform(&random, 1e-6, 10), &random);
    Eigen::Matrix<double, n - 1, 1> e, de, s;
    auto next = RandomDualDirection<Law>(&random);
    for (int row = 0, axis = 0; row < n; ++row) {
      if (row == 2) continue;
      e[axis] = cone.mu[row] * (cone.v_hat[row] - v[row]);
      de[axis] = -cone.mu[row] * dv[row];
      s[axis] = next[axis];
      ++axis;
    }
    Law::UpdateDirection(p, point, dv, &next);
    Eigen::Matrix<double, n - 1, 1> expected = (e + de - s * e.normalized().dot(de)) / e.norm();
    expected /= std::max(1.0, expected.norm());
    for (int axis = 0; axis < n - 1; ++axis) EXPECT_NEAR(next[axis], expected[axis], 1e-12);
    ++tested;
  }
}

TYPED_TEST(GeneralConeTest, DualDirectionStaysInTheBallAndVanishesWhereTheContactIsOpen) {
  using Law = typename TestFixture::Law;
  Random random(14);
  for (int i = 0; i < 10000; ++i) {
    const auto cone = RandomCone<TestFixture::n>(&random, 1e3);
    const auto p = cone.Parameters();
    const auto point = Law::At(p, RandomVelocity(cone, &random));
    auto s = RandomDualDirection<Law>(&random);
    Law::UpdateDirection(p, point, RandomlyMoved<Law>({}, LogUniform(&random, 1e-9, 1e9), &random),
                         &s);
    EXPECT_LE(NormOf<Law>(s), 1 + 4 * kDoubleEpsilon);
    EXPECT_TRUE(point.region != ConeRegion::kOpen || NormOf<Law>(s) == 0);
  }
}

TYPED_TEST(GeneralConeTest, VelocitiesOfAnySizeWhoseSquaresAreDoublesGiveFiniteValues) {
  using Law = typename TestFixture::Law;
  Random random(15);
  for (const double size : {1e-140, 1e-100, 1e100, 1e140}) {
    for (int i = 0; i < 500; ++i) {
      const auto cone = RandomCone<TestFixture::n>(&random, 10);
      const auto p = cone.Parameters();
      const auto point = Law::At(p, RandomlyMoved<Law>({}, size, &random));
      EXPECT_TRUE(std::isfinite(point.cost));
      for (const double component : point.gamma) EXPECT_TRUE(std::isfinite(component));
      const auto G = Law::Hessian(p, point, RandomDualDirection<Law>(&random));
      for (const double entry : G.entries) EXPECT_TRUE(std::isfinite(entry));
    }
  }
}

TYPED_TEST(GeneralConeTest, ParametersBeyondDoublesAreNotRepresentable) {
  EXPECT_TRUE(TestFixture::Isotropic(0.5).Parameters().IsRepresentable());
  EXPECT_TRUE(TestFixture::Isotropic(0).Parameters().IsRepresentable());
  EXPECT_FALSE(TestFixture::Isotropic(1e-170).Parameters().IsRepresentable());
  EXPECT_FALSE(TestFixture::Isotropic(1e170).Parameters().IsRepresentable());
  for (const double R_n : {0.0, 1e-310, std::numeric_limits<double>::infinity()}) {
    auto cone = TestFixture::Isotropic(0.5);
    cone.R_n = R_n;
    EXPECT_FALSE(cone.Parameters().IsRepresentable()) << R_n;
  }
  // R_j = R_t (mu_1 / mu_j)^2 beyond doubles.
  for (const auto& [mu_1, mu_2] : {std::pair(0.0, 0.5), std::pair(1e-100, 1e100)}) {
    auto cone = TestFixture::Isotropic(mu_1);
    cone.mu[1] = mu_2;
    EXPECT_FALSE(cone.Parameters().IsRepresentable());
  }
}

// Axes without friction carry nothing and change nothing of the others.
TEST(GeneralConeTest, ConeWithoutAngularFrictionIsThatOfItsTangents) {
  Random random(16);
  for (int i = 0; i < 2000; ++i) {
    const auto cone = RandomCone<3>(&random, 10);
    const LawVector<3> v = RandomVelocity(cone, &random);
    const auto expected = GeneralCone<3>::At(cone.Parameters(), v);
    Cone<6> rolling{.R_t = cone.R_t, .R_n = cone.R_n, .c = cone.c};
    std::copy_n(cone.mu.begin(), 3, rolling.mu.begin());
    std::copy_n(cone.v_hat.begin(), 3, rolling.v_hat.begin());
    const auto p = rolling.Parameters();
    const auto point = GeneralCone<6>::At(p, {v[0], v[1], v[2], 5, -6, 7});
    EXPECT_EQ(point.gamma,
              (LawVector<6>{expected.gamma[0], expected.gamma[1], expected.gamma[2], 0, 0, 0}));
    EXPECT_EQ(point.cost, expected.cost);
    const auto G = GeneralCone<6>::Hessian(p, point);
    const auto expected_G = GeneralCone<3>::Hessian(cone.Parameters(), expected);
    for (int row = 0; row < 6; ++row) {
      for (int column = 0; column < 6; ++column) {
        const bool is_linear = row < 3 && column < 3;
        EXPECT_EQ(G(row, column), is_linear ? expected_G(row, column) : 0);
      }
    }
  }
}

// The projection of plain friction contacts is written in impulses, not in scaled velocities.
TEST(GeneralConeTest, IsotropicConeIsThatOfAFrictionContact) {
  using Law = GeneralCone<3>;
  Random random(17);
  for (int i = 0; i < 10000; ++i) {
    auto cone = RandomCone<3>(&random, 1e3);
    cone.mu[1] = cone.mu[0];
    cone.c = 0;
    const LawVector<3> v = RandomVelocity(cone, &random);
    FrictionContacts contacts;
    contacts.Resize(1);
    contacts.Set(0,
                 {cone.R_t, cone.R_n, cone.mu[0], {cone.v_hat[0], cone.v_hat[1], cone.v_hat[2]}});
    const auto friction = contacts.At(0, double{});
    const auto expected = ProjectOnCone(friction, {v[0], v[1], v[2]});
    const auto c = cone.CaseAt(v);
    const auto point = Law::At(c.p, v);
    const LawVector<3> error{point.gamma[0] - expected.gamma.x, point.gamma[1] - expected.gamma.y,
                             point.gamma[2] - expected.gamma.n};
    ASSERT_LE(cone.NormR(error), 32 * kDoubleEpsilon * std::sqrt(c.cost_size));
    EXPECT_NEAR(point.cost, ConeCost(friction, expected.gamma), 32 * kDoubleEpsilon * c.cost_size);
    auto s = RandomDualDirection<Law>(&random);
    const auto expected_G = ConeHessian(friction, expected, s[0], s[1]);
    const auto G = Scaled(c, Law::Hessian(c.p, point, s));
    LawMatrix<3> unscaled{{expected_G.xx, expected_G.xy, expected_G.xn, expected_G.xy,
                           expected_G.yy, expected_G.yn, expected_G.xn, expected_G.yn,
                           expected_G.nn}};
    EXPECT_LE((G - Scaled(c, unscaled)).norm(), 1e-10);
    double s_x = s[0], s_y = s[1];
    const LawVector<3> dv = RandomlyMoved<Law>({}, 1, &random);
    UpdateDualDirection(friction, expected, {dv[0], dv[1], dv[2]}, &s_x, &s_y);
    Law::UpdateDirection(c.p, point, dv, &s);
    EXPECT_NEAR(s[0], s_x, 1e-9);
    EXPECT_NEAR(s[1], s_y, 1e-9);
  }
}

}  // namespace
}  // namespace sap::test::general_cone
