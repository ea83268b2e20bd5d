#include "solver/laws/hunt_crossley.h"

#include "tests/solver/laws/law_properties.h"

namespace sap::test::hunt_crossley {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A contact in the terms in which it is given.
struct Contact {
  LawVector<3> offset{};
  double mu{0.5}, f_e{10}, k{1e3}, d{0.5}, n_0{0.2}, eps{1e-3}, dt{0.01};

  template <typename Law>
  typename Law::Parameters Parameters() const {
    return Law::Parameters::Make(offset, mu, f_e, k, d, n_0, eps, dt);
  }
  double OpeningVelocity() const {
    const double of_stiffness = k > 0 ? f_e / (dt * k) : f_e > 0 ? kInfinity : -kInfinity;
    return std::min(of_stiffness, d > 0 ? 1 / d : kInfinity);
  }
  Contact Heavier(double factor) const {
    Contact heavier = *this;
    heavier.f_e *= factor;
    heavier.k *= factor;
    heavier.n_0 *= factor;
    return heavier;
  }
};

// The definition in 80-bit arithmetic. N is the integral of n from 0, of the polynomial it is while
// closed: Simpson's rule is exact for it.
struct Definition {
  long double E, z, n, dn, N, soft;
  std::array<long double, 3> gamma;
  long double cost;

  Definition(const Contact& c, const LawVector<3>& v_c, bool is_lagged) {
    const long double x = static_cast<long double>(v_c[0]) + c.offset[0];
    const long double y = static_cast<long double>(v_c[1]) + c.offset[1];
    const long double v_n = static_cast<long double>(v_c[2]) + c.offset[2];
    const auto f = [&](long double at) { return c.f_e - c.dt * c.k * at; };
    const auto q = [&](long double at) { return 1 - c.d * at; };
    const auto closed = [&](long double at) { return c.dt * f(at) * q(at); };
    E = std::hypot(std::hypot(x, y), static_cast<long double>(c.eps));
    soft = E - c.eps;
    z = is_lagged ? v_n : v_n - c.mu * soft;
    const bool is_closed = f(z) > 0 && q(z) > 0;
    n = is_closed ? closed(z) : 0;
    dn = is_closed ? -c.dt * (static_cast<long double>(c.dt) * c.k * q(z) + c.d * f(z)) : 0;
    const long double end = is_closed ? z : c.OpeningVelocity();
    N = std::isfinite(end) ? end / 6 * (closed(0) + 4 * closed(end / 2) + closed(end)) : 0;
    const long double bound = c.mu * (is_lagged ? static_cast<long double>(c.n_0) : n);
    gamma = {-bound * x / E, -bound * y / E, n};
    cost = is_lagged ? bound * soft - N : -N;
  }
};

Contact RandomContact(Random* random) {
  const auto rarely_zero = [&](double value) { return UniformInt(random, 0, 5) == 0 ? 0 : value; };
  Contact c;
  for (double& component : c.offset) component = Uniform(random, -1, 1);
  c.dt = LogUniform(random, 1e-3, 0.1);
  c.mu = rarely_zero(LogUniform(random, 0.05, 2));
  c.f_e = rarely_zero(Uniform(random, -5, 10));
  c.k = rarely_zero(LogUniform(random, 1e2, 1e4));
  c.d = rarely_zero(LogUniform(random, 0.05, 5));
  c.n_0 = rarely_zero(Uniform(random, 0, 1));
  c.eps = LogUniform(random, 1e-4, 0.1);
  return c;
}

// On both sides of where the contact opens, and of where friction is full.
LawVector<3> RandomVelocity(const Contact& c, bool is_lagged, Random* random) {
  LawVector<3> v;
  double square = 0;
  for (int i = 0; i < 2; ++i) {
    v[i] = c.eps * LogUniform(random, 0.03, 30) * Uniform(random, -1, 1);
    square += v[i] * v[i];
    v[i] -= c.offset[i];
  }
  const double opening = c.OpeningVelocity();
  const double around = std::isfinite(opening) ? opening : 0;
  v[2] = around + Uniform(random, -1, 1) - c.offset[2];
  if (!is_lagged) v[2] += c.mu * (std::sqrt(square + c.eps * c.eps) - c.eps);
  return v;
}

template <typename Law>
class HuntCrossleyTest : public ::testing::Test {
 public:
  static constexpr bool kIsLagged = std::is_same_v<Law, LaggedHuntCrossley>;

  static typename Law::Point At(const Contact& c, const LawVector<3>& v) {
    return Law::At(c.Parameters<Law>(), v);
  }
  static LawVector<3> Velocity(const Contact& c, Random* random) {
    return RandomVelocity(c, kIsLagged, random);
  }
  static int RegionOf(const typename Law::Parameters& p, const typename Law::Point& point) {
    return point.z < p.opening_velocity;
  }
  static LawCase<Law> CaseAt(const Contact& c, const LawVector<3>& v) {
    const Definition definition(c, v, kIsLagged);
    const auto E = static_cast<double>(definition.E);
    const auto curvature = -static_cast<double>(definition.dn);
    const auto bound = c.mu * (kIsLagged ? c.n_0 : static_cast<double>(definition.n));
    LawVector<3> size;
    for (int i = 0; i < 3; ++i) size[i] = std::abs(v[i]) + std::abs(c.offset[i]);
    const double z = size[2] + c.mu * (size[0] + size[1]);
    const double n = c.dt * (std::abs(c.f_e) + c.dt * c.k * z) * (1 + c.d * z);
    const double opening = c.OpeningVelocity();
    const double open = std::isfinite(opening) ? c.dt * std::abs(c.f_e * opening) : 0;
    const double tangent = bound / E + (kIsLagged ? 0 : c.mu * c.mu * curvature);
    LawCase<Law> result;
    result.p = c.Parameters<Law>();
    result.v = v;
    result.step = {1e-3 * E, 1e-3 * E, 1e-3};
    result.stiffness = {tangent, tangent, curvature};
    result.impulse_size = (1 + c.mu) * n + bound * (1 + (size[0] + size[1]) / E);
    result.cost_size = open + n * z + bound * (size[0] + size[1]);
    return result;
  }
};

using Laws = ::testing::Types<LaggedHuntCrossley, SimilarHuntCrossley>;
TYPED_TEST_SUITE(HuntCrossleyTest, Laws);

TYPED_TEST(HuntCrossleyTest, ImpulseCostAndHessianAreThoseOfTheDefinition) {
  Random random(1);
  int closed = 0, open = 0;
  for (int i = 0; i < 20000; ++i) {
    const Contact c = RandomContact(&random);
    const LawVector<3> v = TestFixture::Velocity(c, &random);
    const Definition expected(c, v, TestFixture::kIsLagged);
    const auto size = TestFixture::CaseAt(c, v);
    const auto point = TestFixture::At(c, v);
    ++(expected.n > 0 ? closed : open);
    for (int row = 0; row < 3; ++row) {
      ASSERT_NEAR(point.gamma[row], static_cast<double>(expected.gamma[row]),
                  16 * kDoubleEpsilon * size.impulse_size);
    }
    ASSERT_NEAR(point.cost, static_cast<double>(expected.cost),
                16 * kDoubleEpsilon * size.cost_size);
  }
  EXPECT_GT(closed, 4000);
  EXPECT_GT(open, 4000);
}

TYPED_TEST(HuntCrossleyTest, DerivativesMatchDifferencesInEveryRegion) {
  Random random(2);
  int tested[2] = {};
  for (int i = 0; i < 10000; ++i) {
    const Contact contact = RandomContact(&random);
    const auto c = TestFixture::CaseAt(contact, TestFixture::Velocity(contact, &random));
    if (!ExpectDerivativesMatchDifferences(c, TestFixture::RegionOf)) continue;
    ++tested[TestFixture::RegionOf(c.p, TypeParam::At(c.p, c.v))];
  }
  for (const int count : tested) EXPECT_GT(count, 2000);
}

TYPED_TEST(HuntCrossleyTest, CostIsConvexAndSmoothWhereTheContactOpens) {
  Random random(3);
  for (int i = 0; i < 10000; ++i) {
    const Contact contact = RandomContact(&random);
    LawVector<3> v = TestFixture::Velocity(contact, &random);
    const double opening = contact.OpeningVelocity();
    // Half of them start where the contact opens.
    if (i % 2 == 0 && std::isfinite(opening)) v[2] += opening - TestFixture::At(contact, v).z;
    const double distance = LogUniform(&random, 1e-12, 1);
    ExpectConvexTowards(TestFixture::CaseAt(contact, v),
                        RandomlyMoved<TypeParam>(v, distance, &random));
  }
}

// In the norm of m / E along the tangents: x'Gx <= 2 m / E |x_t|^2, to which a similar contact adds
// -n' (mu t'x_t - x_n)^2 <= -2 n' (mu^2 |x_t|^2 + x_n^2).
TYPED_TEST(HuntCrossleyTest, HessianIsPositiveSemidefiniteForEveryDualDirection) {
  Random random(4);
  for (int i = 0; i < 10000; ++i) {
    const Contact contact = RandomContact(&random);
    const auto c = TestFixture::CaseAt(contact, TestFixture::Velocity(contact, &random));
    const auto point = TypeParam::At(c.p, c.v);
    const auto plain = TypeParam::Hessian(c.p, point);
    ExpectHessianBetweenZeroAnd(TestFixture::kIsLagged ? 1 : 2, c, plain);
    const auto t = TypeParam::StartDirection(c.p, point);
    auto s = RandomDualDirection<TypeParam>(&random);
    std::copy(t.begin() + 2, t.end(), s.begin() + 2);  // z of a similar contact
    ExpectHessianBetweenZeroAnd(2, c, TypeParam::Hessian(c.p, point, s));
    EXPECT_LT(std::hypot(t[0], t[1]), 1);
    ExpectNear(c, TypeParam::Hessian(c.p, point, t), plain);
  }
}

TYPED_TEST(HuntCrossleyTest, ImpulseErrorCoversEveryVelocityWithinTheError) {
  Random random(5);
  for (int i = 0; i < 10000; ++i) {
    const Contact contact = RandomContact(&random);
    const auto c = TestFixture::CaseAt(contact, TestFixture::Velocity(contact, &random));
    ExpectImpulseErrorCovers(c, LogUniform(&random, 1e-10, 1), &random);
  }
}

TYPED_TEST(HuntCrossleyTest, ScalesWithMassToTheBit) {
  Random random(6);
  for (int i = 0; i < 1000; ++i) {
    const Contact contact = RandomContact(&random);
    const auto c = TestFixture::CaseAt(contact, TestFixture::Velocity(contact, &random));
    for (const double factor : {0x1p-60, 0x1p-3, 0x1p70}) {
      const auto heavier = contact.Heavier(factor).template Parameters<TypeParam>();
      ExpectScalesWithMass(c, heavier, factor, &random);
    }
  }
}

// The offset is added to the velocity.
TYPED_TEST(HuntCrossleyTest, OffsetMovesTheVelocity) {
  Contact c;
  const auto expected = TestFixture::At(c, {0.75, -0.5, -0.25});
  c.offset = {0.5, -1, -0.5};
  const auto point = TestFixture::At(c, {0.25, 0.5, 0.25});
  EXPECT_EQ(point.gamma, expected.gamma);
  EXPECT_EQ(point.cost, expected.cost);
}

// An undamped spring: n = dt (f_e - dt k v), and the energy f_e^2 / 2 k is what it can still give.
TYPED_TEST(HuntCrossleyTest, UndampedContactIsASpringAndKeepsItsEnergyWhenItOpens) {
  const Contact c{.mu = 0, .f_e = 8, .k = 64, .d = 0, .n_0 = 0, .dt = 0.125};
  EXPECT_EQ(TestFixture::At(c, {0, 0, 0}).gamma[2], 1);
  EXPECT_EQ(TestFixture::At(c, {0, 0, 0}).cost, 0);
  EXPECT_EQ(TestFixture::At(c, {0, 0, -1}).gamma[2], 2);
  EXPECT_EQ(TestFixture::At(c, {0, 0, -1}).cost, 1.5);
  for (const double v_n : {1.0, 2.0, 1e9}) {
    EXPECT_EQ(TestFixture::At(c, {0, 0, v_n}).gamma[2], 0);
    EXPECT_EQ(TestFixture::At(c, {0, 0, v_n}).cost, -0.5);
  }
}

// The face of a pressure field: its force does not depend on the velocity, or by dissipation only.
TYPED_TEST(HuntCrossleyTest, ContactWithoutStiffnessHasTheGivenForce) {
  Contact c{.mu = 0, .f_e = 8, .k = 0, .d = 0, .n_0 = 0, .dt = 0.125};
  for (const double v_n : {-1e9, 0.0, 1e9}) {
    const auto point = TestFixture::At(c, {0, 0, v_n});
    EXPECT_EQ(point.gamma[2], 1);
    EXPECT_EQ(point.cost, -v_n);
    EXPECT_EQ(TypeParam::Hessian(c.Parameters<TypeParam>(), point)(2, 2), 0);
  }
  c.d = 0.5;
  const auto point = TestFixture::At(c, {0, 0, 1});
  EXPECT_EQ(point.gamma[2], 0.5);
  EXPECT_EQ(TypeParam::Hessian(c.Parameters<TypeParam>(), point)(2, 2), 0.5);
  EXPECT_EQ(TestFixture::At(c, {0, 0, 2}).gamma[2], 0);
  EXPECT_EQ(TestFixture::At(c, {0, 0, 3}).cost, -1);
}

TYPED_TEST(HuntCrossleyTest, ContactWithoutStiffnessOrForceNeverTouches) {
  for (const double d : {0.0, 0.5}) {
    for (const double f_e : {0.0, -3.0}) {
      const Contact c{.f_e = f_e, .k = 0, .d = d, .n_0 = 0};
      for (const double v_n : {-1e6, 0.0, 1e6}) {
        const auto point = TestFixture::At(c, {0.5, 0, v_n});
        for (const double component : point.gamma) EXPECT_EQ(component, 0);
        EXPECT_EQ(point.cost, 0);
        const auto G = TypeParam::Hessian(c.Parameters<TypeParam>(), point);
        for (const double entry : G.entries) EXPECT_EQ(entry, 0);
      }
    }
  }
}

// At a distance: f_e < 0 by stiffness, and the contact is touched within the step.
TYPED_TEST(HuntCrossleyTest, ContactAtADistanceTouchesIfItIsReachedWithinTheStep) {
  const Contact c{.mu = 0, .f_e = -8, .k = 64, .d = 0, .n_0 = 0, .dt = 0.125};
  EXPECT_EQ(TestFixture::At(c, {0, 0, -1}).gamma[2], 0);
  EXPECT_EQ(TestFixture::At(c, {0, 0, -2}).gamma[2], 1);
}

TYPED_TEST(HuntCrossleyTest, DualStepSolvesTheLinearizedEquation) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const Contact c = RandomContact(&random);
    const LawVector<3> v = TestFixture::Velocity(c, &random);
    const auto dv = RandomlyMoved<TypeParam>({}, c.eps * LogUniform(&random, 1e-3, 1e3), &random);
    const Eigen::Vector2d v_t(v[0] + c.offset[0], v[1] + c.offset[1]), dv_t(dv[0], dv[1]);
    const double E = std::hypot(v_t.norm(), c.eps);
    auto s = RandomDualDirection<TypeParam>(&random);
    // E s = v_t linearized in v and s together: s_next E + s t'dv = v_t + dv.
    Eigen::Vector2d expected = (v_t + dv_t - Eigen::Vector2d(s[0], s[1]) * v_t.dot(dv_t) / E) / E;
    expected /= std::max(1.0, expected.norm());
    TypeParam::UpdateDirection(c.Parameters<TypeParam>(), TestFixture::At(c, v), dv, &s);
    EXPECT_LE(std::hypot(s[0], s[1]), 1 + 4 * kDoubleEpsilon);
    EXPECT_NEAR(s[0], expected[0], 1e-10);
    EXPECT_NEAR(s[1], expected[1], 1e-10);
  }
}

// From s = t the step is that of t itself, up to the square of dv / E.
TYPED_TEST(HuntCrossleyTest, DualDirectionFollowsTheSlipToFirstOrder) {
  Random random(8);
  for (int i = 0; i < 2000; ++i) {
    const Contact c = RandomContact(&random);
    const auto p = c.Parameters<TypeParam>();
    const LawVector<3> v = TestFixture::Velocity(c, &random);
    const auto point = TypeParam::At(p, v);
    const double size = LogUniform(&random, 1e-4, 0.1);  // relative to E
    const auto end = RandomlyMoved<TypeParam>(v, size * point.E, &random);
    auto s = TypeParam::StartDirection(p, point);
    TypeParam::UpdateDirection(p, point, {end[0] - v[0], end[1] - v[1], end[2] - v[2]}, &s);
    const auto t = TypeParam::StartDirection(p, TypeParam::At(p, end));
    EXPECT_LE(std::hypot(s[0] - t[0], s[1] - t[1]), 8 * size * size);
  }
}

TYPED_TEST(HuntCrossleyTest, ContactIsKinkedWhereItHasFriction) {
  const auto kinked = [](const Contact& c, double v_n) {
    return TypeParam::IsKinked(c.Parameters<TypeParam>(), TestFixture::At(c, {0, 0, v_n}));
  };
  EXPECT_TRUE(kinked({}, 0));
  EXPECT_FALSE(kinked({.mu = 0}, 0));
  // The friction of a lagged contact is that of its lagged impulse, open or not.
  EXPECT_EQ(kinked({}, 1e3), TestFixture::kIsLagged);
  EXPECT_EQ(kinked({.n_0 = 0}, 0), !TestFixture::kIsLagged);
}

TYPED_TEST(HuntCrossleyTest, VelocitiesOfAnySizeWhoseCubesAreDoublesGiveFiniteValues) {
  Random random(9);
  for (const double size : {1e-140, 1e-100, 1e90}) {
    for (int i = 0; i < 500; ++i) {
      const auto p = RandomContact(&random).template Parameters<TypeParam>();
      const auto point = TypeParam::At(p, RandomlyMoved<TypeParam>({}, size, &random));
      EXPECT_TRUE(std::isfinite(point.cost));
      for (const double component : point.gamma) EXPECT_TRUE(std::isfinite(component));
      const auto G = TypeParam::Hessian(p, point, RandomDualDirection<TypeParam>(&random));
      for (const double entry : G.entries) EXPECT_TRUE(std::isfinite(entry));
    }
  }
}

TYPED_TEST(HuntCrossleyTest, ParametersBeyondDoublesAreNotRepresentable) {
  const auto is_representable = [](const Contact& c) {
    return c.Parameters<TypeParam>().IsRepresentable();
  };
  EXPECT_TRUE(is_representable({}));
  EXPECT_TRUE(is_representable({.mu = 0, .f_e = 0, .k = 0, .d = 0, .n_0 = 0}));
  EXPECT_FALSE(is_representable({.f_e = 1e308, .dt = 100}));
  EXPECT_FALSE(is_representable({.k = 1e308, .dt = 100}));
  EXPECT_FALSE(is_representable({.mu = 1e200, .n_0 = 1e200}));
  EXPECT_FALSE(is_representable({.eps = 0}));
  EXPECT_FALSE(is_representable({.eps = 1e-170}));
  EXPECT_FALSE(is_representable({.eps = 1e170}));
  EXPECT_FALSE(is_representable({.offset = {kInfinity, 0, 0}}));
}

}  // namespace
}  // namespace sap::test::hunt_crossley
