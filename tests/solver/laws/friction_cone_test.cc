#include "solver/laws/friction_cone.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "solver/pools/friction_contacts.h"
#include "tests/support/dense_algebra.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector2d;
using Eigen::Vector3d;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct Contact {
  double R_t{1e-3}, R_n{0.1}, mu{0.5};

  ConeParameters<double> Parameters() const {
    FrictionContacts contacts;
    contacts.Resize(1);
    contacts.Set(0, {R_t, R_n, mu, {0, 0, 0}});
    return contacts.At(0, double{});
  }
  // The contact velocity at which y is what it is: v_hat = 0 here.
  ContactVector<double> VelocityFor(const Vector3d& y) const {
    return {-R_t * y.x(), -R_t * y.y(), -R_n * y.z()};
  }
  ConePoint<double> Project(const Vector3d& y) const {
    return ProjectOnCone(Parameters(), VelocityFor(y));
  }
  Vector3d Impulse(const Vector3d& y) const {
    const ContactVector<double> gamma = Project(y).gamma;
    return {gamma.x, gamma.y, gamma.n};
  }
  double NormR(const Vector3d& g) const {
    return std::sqrt(R_t * (g.x() * g.x() + g.y() * g.y()) + R_n * g.z() * g.z());
  }
  // Opening of the dual cone: y_n <= -mu_hat y_r gives no impulse.
  double mu_hat() const { return mu * R_t / R_n; }
};

Vector3d ToVector(const ContactVector<double>& v) { return {v.x, v.y, v.n}; }

Matrix3d ToMatrix(const SymmetricMatrix3<double>& G) {
  Matrix3d matrix;
  matrix << G.xx, G.xy, G.xn, G.xy, G.yy, G.yn, G.xn, G.yn, G.nn;
  return matrix;
}

Matrix3d PlainHessian(const Contact& contact, const Vector3d& v) {
  const auto p = contact.Parameters();
  const auto point = ProjectOnCone(p, {v.x(), v.y(), v.z()});
  return ToMatrix(ConeHessian(p, point, point.t_hat_x, point.t_hat_y));
}

double CostAt(const Contact& contact, const Vector3d& v) {
  const auto p = contact.Parameters();
  return ConeCost(p, ProjectOnCone(p, {v.x(), v.y(), v.z()}).gamma);
}

Vector3d ImpulseAt(const Contact& contact, const Vector3d& v) {
  return ToVector(ProjectOnCone(contact.Parameters(), {v.x(), v.y(), v.z()}).gamma);
}

// argmin over the cone of 1/2 (g - y)' R (g - y), knowing nothing of regions: for a normal impulse
// g_n the best tangential one is y_t brought into the disk of radius mu g_n, and the slope in g_n
// of what is left is bisected in 80-bit arithmetic.
Vector3d NearestByBisection(const Contact& contact, const Vector3d& y) {
  const long double R_t = contact.R_t, R_n = contact.R_n, mu = contact.mu;
  const long double y_r = std::hypot(static_cast<long double>(y.x()), y.y());
  const auto slope = [&](long double g_n) {
    return R_n * (g_n - y.z()) - mu * R_t * std::fmax(0.0L, y_r - mu * g_n);
  };
  if (slope(0) >= 0) return Vector3d::Zero();
  long double low = 0, high = 1;
  while (slope(high) < 0) high *= 2;
  for (int i = 0; i < 200; ++i) {
    const long double middle = (low + high) / 2;
    (slope(middle) < 0 ? low : high) = middle;
  }
  const long double scale = y_r > mu * high ? mu * high / y_r : 1.0L;
  return {static_cast<double>(scale * y.x()), static_cast<double>(scale * y.y()),
          static_cast<double>(high)};
}

// A contact with R over ten orders of magnitude, frictionless every eighth time.
Contact RandomContact(Random* random) {
  return {.R_t = LogUniform(random, 1e-8, 1e2),
          .R_n = LogUniform(random, 1e-6, 1e2),
          .mu = UniformInt(random, 0, 7) == 0 ? 0.0 : LogUniform(random, 1e-3, 1e3)};
}

// An unconstrained impulse anywhere, with |y_t| sqrt(R_t) and |y_n| sqrt(R_n) of like size, so that
// all regions come up.
Vector3d RandomUnconstrainedImpulse(const Contact& contact, Random* random) {
  const Vector3d direction = RandomUnitVector(random);
  return Vector3d(direction.x() / std::sqrt(contact.R_t), direction.y() / std::sqrt(contact.R_t),
                  direction.z() / std::sqrt(contact.R_n)) *
         LogUniform(random, 1e-6, 1e3);
}

enum class Region { kStick, kSlide, kOpen };

Region RegionOf(const ConePoint<double>& point) {
  if (point.stick) return Region::kStick;
  return point.slide ? Region::kSlide : Region::kOpen;
}

// Whether a step of this relative size stays clear of the boundaries between regions and the kink
// of the norm at y_t = 0, so that differences across it mean something.
bool IsSmoothAround(const Contact& contact, const Vector3d& y, double relative) {
  const double y_r = std::hypot(y.x(), y.y());
  const double size = std::sqrt(contact.R_t) * y_r + std::sqrt(contact.R_n) * std::abs(y.z());
  const double margin = relative * size;
  const double stick = std::sqrt(contact.R_t) * (y_r - contact.mu * y.z());
  const double open = std::sqrt(contact.R_n) * (y.z() + contact.mu_hat() * y_r);
  return std::abs(stick) > margin * (1 + contact.mu * std::sqrt(contact.R_t / contact.R_n)) &&
         std::abs(open) > margin * (1 + contact.mu * std::sqrt(contact.R_t / contact.R_n)) &&
         std::sqrt(contact.R_t) * y_r > margin;
}

TEST(FrictionConeTest, StickingImpulseIsTheUnconstrainedOne) {
  const Contact contact;
  const Vector3d y(0.3, -0.2, 1.0);  // |y_t| = 0.36 < 0.5
  const ConePoint<double> point = contact.Project(y);
  EXPECT_EQ(RegionOf(point), Region::kStick);
  EXPECT_LE((ToVector(point.gamma) - y).norm(), 4 * kEpsilon);
}

TEST(FrictionConeTest, SlidingImpulseLiesOnTheConeAlongTheUnconstrainedOne) {
  const Contact contact;
  const Vector3d y(3.0, 4.0, 1.0);
  const ConePoint<double> point = contact.Project(y);
  EXPECT_EQ(RegionOf(point), Region::kSlide);
  const double gamma_n = (1.0 + 0.5 * (1e-3 / 0.1) * 5.0) / (1 + 0.25 * 1e-3 / 0.1);
  EXPECT_NEAR(point.gamma.n, gamma_n, 4 * kEpsilon);
  EXPECT_NEAR(point.gamma.x, 0.5 * gamma_n * 0.6, 4 * kEpsilon);
  EXPECT_NEAR(point.gamma.y, 0.5 * gamma_n * 0.8, 4 * kEpsilon);
}

TEST(FrictionConeTest, OpenContactHasNoImpulseAndNoStiffness) {
  const Contact contact;
  const ConePoint<double> point = contact.Project({3.0, 4.0, -1.0});
  EXPECT_EQ(RegionOf(point), Region::kOpen);
  EXPECT_EQ(ToVector(point.gamma), Vector3d::Zero());
  EXPECT_EQ(ToMatrix(ConeHessian(contact.Parameters(), point, 0.6, 0.8)), Matrix3d::Zero());
}

// Friction turns a contact that moves apart slowly but slides fast into one with an impulse.
TEST(FrictionConeTest, SlidingBeginsWhereTheDualConeEnds) {
  const Contact contact;
  const double at_boundary = -contact.mu_hat() * 5;
  EXPECT_EQ(RegionOf(contact.Project({3, 4, at_boundary * (1 + 1e-12)})), Region::kOpen);
  EXPECT_EQ(RegionOf(contact.Project({3, 4, at_boundary * (1 - 1e-12)})), Region::kSlide);
}

TEST(FrictionConeTest, StickingEndsWhereTheConeEnds) {
  const Contact contact;
  EXPECT_EQ(RegionOf(contact.Project({3, 4, 10 * (1 + 1e-12)})), Region::kStick);
  EXPECT_EQ(RegionOf(contact.Project({3, 4, 10 * (1 - 1e-12)})), Region::kSlide);
}

TEST(FrictionConeTest, ApexIsOpenAndHasNoImpulse) {
  for (const double mu : {0.0, 0.5, 1e8}) {
    const Contact contact{.mu = mu};
    const ConePoint<double> point = contact.Project(Vector3d::Zero());
    EXPECT_EQ(ToVector(point.gamma), Vector3d::Zero());
    EXPECT_TRUE(ToMatrix(ConeHessian(contact.Parameters(), point, 0.0, 0.0)).allFinite());
  }
}

TEST(FrictionConeTest, NormalAxisSticksAboveTheApexAndOpensBelow) {
  const Contact contact;
  EXPECT_EQ(contact.Impulse({0, 0, 2}), Vector3d(0, 0, 2));
  EXPECT_EQ(contact.Impulse({0, 0, -2}), Vector3d::Zero());
}

TEST(FrictionConeTest, ImpulseIsContinuousAcrossBoundaries) {
  Random random(11);
  for (int i = 0; i < 2000; ++i) {
    const Contact contact = RandomContact(&random);
    const double angle = Uniform(&random, 0, 2 * std::numbers::pi);
    const double y_r = LogUniform(&random, 1e-3, 1e3);
    const Vector3d tangent(y_r * std::cos(angle), y_r * std::sin(angle), 0);
    for (const double y_n : {y_r / contact.mu, -contact.mu_hat() * y_r, 0.0}) {
      if (!std::isfinite(y_n)) continue;
      constexpr double kStep = 1e-9;
      const double step = kStep * contact.NormR({y_r, 0, y_n}) / std::sqrt(contact.R_n);
      const Vector3d below = tangent + Vector3d(0, 0, y_n - step);
      const Vector3d above = tangent + Vector3d(0, 0, y_n + step);
      // A projection never moves apart what goes in.
      const double jump = contact.NormR(contact.Impulse(above) - contact.Impulse(below));
      EXPECT_LE(jump, (2 * kStep + 50 * kEpsilon) * contact.NormR({y_r, 0, y_n}))
          << "mu " << contact.mu << " R_t " << contact.R_t << " R_n " << contact.R_n;
    }
  }
}

TEST(FrictionConeTest, ProjectionMatchesBisectionInAllRegions) {
  Random random(1);
  int seen[3] = {};
  for (int i = 0; i < 20000; ++i) {
    const Contact contact = RandomContact(&random);
    const Vector3d y = RandomUnconstrainedImpulse(contact, &random);
    ++seen[static_cast<int>(RegionOf(contact.Project(y)))];
    const double error = contact.NormR(contact.Impulse(y) - NearestByBisection(contact, y));
    ASSERT_LE(error, 32 * kEpsilon * contact.NormR(y))
        << "mu " << contact.mu << " R_t " << contact.R_t << " R_n " << contact.R_n << " y "
        << y.transpose();
  }
  for (const int count : seen) EXPECT_GT(count, 1000);
}

TEST(FrictionConeTest, FrictionlessContactPushesAlongTheNormalOnly) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    const Contact contact{.R_t = LogUniform(&random, 1e-12, 1), .R_n = 0.1, .mu = 0};
    const Vector3d y = UniformVector(&random, 3, -1, 1);
    const Vector3d gamma = contact.Impulse(y);
    EXPECT_EQ(gamma.head<2>(), Vector2d::Zero());
    EXPECT_NEAR(gamma.z(), std::max(0.0, y.z()), 2 * kEpsilon);
    Matrix3d G = Matrix3d::Zero();
    if (y.z() > 0) G(2, 2) = 1 / contact.R_n;
    EXPECT_LE((PlainHessian(contact, ToVector(contact.VelocityFor(y))) - G).norm(), 1e-14);
  }
}

// Where y_t = 0 as well: the impulse stays (0, 0, y_n) whichever way the contact starts to move.
TEST(FrictionConeTest, FrictionlessContactAtRestIsStiffAlongTheNormalOnly) {
  const Contact contact{.R_t = 1e-3, .R_n = 0.1, .mu = 0};
  const Vector3d v = ToVector(contact.VelocityFor({0, 0, 2}));
  constexpr double kStep = 1e-6;
  Matrix3d difference;
  for (int i = 0; i < 3; ++i) {
    const Vector3d step = kStep * Vector3d::Unit(i);
    difference.col(i) = (ImpulseAt(contact, v - step) - ImpulseAt(contact, v + step)) / (2 * kStep);
  }
  EXPECT_LE((PlainHessian(contact, v) - difference).norm(), 1e-8);
  EXPECT_EQ(PlainHessian(contact, v), Vector3d(0, 0, 1 / contact.R_n).asDiagonal().toDenseMatrix());
  EXPECT_EQ(ImpulseAt(contact, v), Vector3d(0, 0, 2));
  const auto point = ProjectOnCone(contact.Parameters(), {v.x(), v.y(), v.z()});
  EXPECT_EQ(ConeAlongLine(contact.Parameters(), point, {1, 2, 0}).second, 0);
}

TEST(FrictionConeTest, VeryLargeFrictionSticksWhereverItPushes) {
  const Contact contact{.mu = 1e8};
  const Vector3d y(1e3, -2e3, 1e-3);
  EXPECT_EQ(RegionOf(contact.Project(y)), Region::kStick);
  // Even in separation the tangent prevails: the nearest point of an almost flat cone.
  const Vector3d separating(1, 0, -1);
  EXPECT_LE((contact.Impulse(separating) - NearestByBisection(contact, separating)).norm(), 1e-12);
  EXPECT_NEAR(contact.Impulse(separating).x(), 1.0, 1e-5);
}

TEST(FrictionConeTest, ScalingTheUnconstrainedImpulseScalesTheImpulse) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const Contact contact = RandomContact(&random);
    const Vector3d y = RandomUnconstrainedImpulse(contact, &random);
    for (const double scale : {0x1p-300, 0x1p-20, 0x1p20, 0x1p300}) {
      EXPECT_EQ(contact.Impulse(scale * y), scale * contact.Impulse(y));
    }
  }
}

TEST(FrictionConeTest, TurningTheTangentPlaneTurnsTheImpulse) {
  Random random(4);
  for (int i = 0; i < 1000; ++i) {
    const Contact contact = RandomContact(&random);
    const Vector3d y = RandomUnconstrainedImpulse(contact, &random);
    const double angle = Uniform(&random, 0, 2 * std::numbers::pi);
    Matrix3d turn = Matrix3d::Identity();
    turn.topLeftCorner<2, 2>() << std::cos(angle), -std::sin(angle), std::sin(angle),
        std::cos(angle);
    EXPECT_LE(contact.NormR(contact.Impulse(turn * y) - turn * contact.Impulse(y)),
              32 * kEpsilon * contact.NormR(y));
  }
}

// The impulse is minus the derivative of the cost, and G minus the derivative of the impulse.
TEST(FrictionConeTest, DerivativesMatchCentralDifferencesInEveryRegion) {
  Random random(5);
  int seen[3] = {};
  while (seen[0] < 300 || seen[1] < 300 || seen[2] < 300) {
    const Contact contact{.R_t = LogUniform(&random, 1e-3, 1),
                          .R_n = LogUniform(&random, 1e-2, 1),
                          .mu = LogUniform(&random, 0.05, 5)};
    const Vector3d y = RandomUnitVector(&random);
    if (!IsSmoothAround(contact, y, 0.05)) continue;
    const Vector3d v = ToVector(contact.VelocityFor(y));
    ++seen[static_cast<int>(RegionOf(contact.Project(y)))];
    const Matrix3d G = PlainHessian(contact, v);
    for (int k = 0; k < 3; ++k) {
      const double h = 1e-5 * (k < 2 ? contact.R_t : contact.R_n);
      const Vector3d e = h * Vector3d::Unit(k);
      const double slope = (CostAt(contact, v + e) - CostAt(contact, v - e)) / (2 * h);
      EXPECT_NEAR(slope, -ImpulseAt(contact, v)[k], 1e-7);
      const Vector3d column = -(ImpulseAt(contact, v + e) - ImpulseAt(contact, v - e)) / (2 * h);
      EXPECT_LE((column - G.col(k)).norm(), 1e-6 * (1 / contact.R_t + 1 / contact.R_n));
    }
  }
}

// It is at most 3 R^-1: in the norm of R a projector, plus G_perp R_t <= 1 times a matrix of norm
// 2.
TEST(FrictionConeTest, HessianIsPositiveSemidefiniteForEveryDualDirectionInTheDisk) {
  Random random(6);
  for (int i = 0; i < 5000; ++i) {
    const Contact contact = RandomContact(&random);
    const auto p = contact.Parameters();
    const auto point = contact.Project(RandomUnconstrainedImpulse(contact, &random));
    const double angle = Uniform(&random, 0, 2 * std::numbers::pi);
    const double radius = UniformInt(&random, 0, 1) == 0 ? 1.0 : Uniform(&random, 0, 1);
    const Matrix3d G =
        ToMatrix(ConeHessian(p, point, radius * std::cos(angle), radius * std::sin(angle)));
    ASSERT_TRUE(G.allFinite());
    // In the norm of R, where the entries are of like size.
    const Vector3d root_R(std::sqrt(contact.R_t), std::sqrt(contact.R_t), std::sqrt(contact.R_n));
    const Matrix3d scaled = root_R.asDiagonal() * G * root_R.asDiagonal();
    const Vector3d eigenvalues = EigenvaluesOf(scaled);
    EXPECT_GE(eigenvalues[0], -1e-14 * (1 + scaled.trace()));
    EXPECT_LE(eigenvalues[2], 3 + 1e-13);
  }
}

TEST(FrictionConeTest, DualDirectionMattersOnlyInSliding) {
  const Contact contact;
  const auto p = contact.Parameters();
  for (const Vector3d& y : {Vector3d(0.1, 0.2, 1), Vector3d(0.1, 0.2, -1)}) {
    const auto point = contact.Project(y);
    EXPECT_EQ(ToMatrix(ConeHessian(p, point, 0.3, -0.4)),
              ToMatrix(ConeHessian(p, point, point.t_hat_x, point.t_hat_y)));
  }
  const auto sliding = contact.Project({3, 4, 1});
  EXPECT_NE(ToMatrix(ConeHessian(p, sliding, 0.3, -0.4)),
            ToMatrix(ConeHessian(p, sliding, sliding.t_hat_x, sliding.t_hat_y)));
}

TEST(FrictionConeTest, SlopeAlongALineMatchesDifferencesOfTheCost) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const Contact contact{.R_t = LogUniform(&random, 1e-3, 1),
                          .R_n = LogUniform(&random, 1e-2, 1),
                          .mu = LogUniform(&random, 0.05, 5)};
    const Vector3d y = RandomUnitVector(&random);
    if (!IsSmoothAround(contact, y, 0.05)) continue;
    const Vector3d v = ToVector(contact.VelocityFor(y));
    const Vector3d d = ToVector(contact.VelocityFor(RandomUnitVector(&random)));
    const auto p = contact.Parameters();
    const ConeSlope<double> slope =
        ConeAlongLine(p, ProjectOnCone(p, {v.x(), v.y(), v.z()}), {d.x(), d.y(), d.z()});
    constexpr double kStep = 1e-5;
    const double first =
        (CostAt(contact, v + kStep * d) - CostAt(contact, v - kStep * d)) / (2 * kStep);
    EXPECT_NEAR(slope.first, first, 1e-8);
    const auto slope_at = [&](double alpha) { return -d.dot(ImpulseAt(contact, v + alpha * d)); };
    EXPECT_NEAR(slope.second, (slope_at(kStep) - slope_at(-kStep)) / (2 * kStep), 1e-6);
    EXPECT_NEAR(slope.second, d.dot(PlainHessian(contact, v) * d), 1e-12);
  }
}

TEST(FrictionConeTest, DualDirectionOfAnImpulseIsItsShareOfTheConeRadius) {
  const auto p = Contact{.mu = 0.5}.Parameters();
  double s_x = 7, s_y = 7;
  DualDirectionOf(p, {0.3, -0.4, 2}, &s_x, &s_y);
  EXPECT_DOUBLE_EQ(s_x, 0.3);
  EXPECT_DOUBLE_EQ(s_y, -0.4);
  DualDirectionOf(p, {0, 0, 0}, &s_x, &s_y);
  EXPECT_EQ(Vector2d(s_x, s_y), Vector2d::Zero());
  DualDirectionOf(Contact{.mu = 0}.Parameters(), {0, 0, 2}, &s_x, &s_y);
  EXPECT_EQ(Vector2d(s_x, s_y), Vector2d::Zero());
}

// The step of s solves |u| s = u linearized at (u, s): (|u| + t'du) s + |u| ds = u + du.
TEST(FrictionConeTest, DualStepOfASlidingContactSolvesTheLinearizedEquation) {
  Random random(8);
  const Contact contact;
  const auto p = contact.Parameters();
  for (int i = 0; i < 500; ++i) {
    const Vector3d y(3, 4, Uniform(&random, 0, 5));
    const auto point = contact.Project(y);
    const Vector2d u = contact.R_t * y.head<2>();
    const Vector2d d = 1e-4 * UniformVector(&random, 2, -1, 1);
    const Vector2d s = 0.7 * UniformVector(&random, 2, -1, 1);
    const Vector2d du = -d;
    const Vector2d expected = (u + du - s * u.normalized().dot(du)) / u.norm();
    double s_x = s.x(), s_y = s.y();
    UpdateDualDirection(p, point, {d.x(), d.y(), 0.0}, &s_x, &s_y);
    const double length = std::max(1.0, expected.norm());
    EXPECT_LE((Vector2d(s_x, s_y) - expected / length).norm(), 1e-13);
  }
}

TEST(FrictionConeTest, DualDirectionStaysInTheDiskAndVanishesWithoutFriction) {
  Random random(9);
  for (int i = 0; i < 5000; ++i) {
    const Contact contact = RandomContact(&random);
    const auto point = contact.Project(RandomUnconstrainedImpulse(contact, &random));
    const Vector3d d = LogUniform(&random, 1e-9, 1e9) * RandomUnitVector(&random);
    double s_x = 0.6, s_y = -0.8;
    UpdateDualDirection(contact.Parameters(), point, {d.x(), d.y(), d.z()}, &s_x, &s_y);
    EXPECT_LE(std::hypot(s_x, s_y), 1 + 4 * kEpsilon);
    if (contact.mu == 0 || RegionOf(point) == Region::kOpen) {
      EXPECT_EQ(Vector2d(s_x, s_y), Vector2d::Zero());
    }
  }
}

TEST(FrictionConeTest, DualDirectionAtRestIsThatOfTheImpulse) {
  const Contact contact;
  const auto p = contact.Parameters();
  for (const Vector3d& y : {Vector3d(0.1, 0.2, 1), Vector3d(3, 4, 1)}) {
    const auto point = contact.Project(y);
    double s_x = 0, s_y = 0, expected_x = 0, expected_y = 0;
    UpdateDualDirection(p, point, {0, 0, 0}, &s_x, &s_y);
    DualDirectionOf(p, point.gamma, &expected_x, &expected_y);
    EXPECT_NEAR(s_x, expected_x, 4 * kEpsilon);
    EXPECT_NEAR(s_y, expected_y, 4 * kEpsilon);
  }
}

}  // namespace
}  // namespace sap::test
