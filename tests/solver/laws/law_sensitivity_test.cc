// Derivatives of the laws with respect to their parameters, against differences of the same laws in
// 80-bit arithmetic.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "solver/laws/bounded_row.h"
#include "solver/laws/general_cone.h"
#include "solver/laws/hunt_crossley.h"
#include "solver/pools/friction_contacts.h"
#include "tests/solver/dense_vectors.h"
#include "tests/support/exact_laws.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// Impulse, then cost, of one constraint.
using ValueL = std::vector<long double>;

// Differences with steps of 1e-5 of the parameter; their error is of fourth order. `value` takes
// the parameters theta. False, and nothing is tested, where two sizes of steps disagree: a kink is
// near.
template <int rows, int parameters, typename Value>
bool ExpectMatchesDifferences(const LawSensitivity<rows, parameters>& sensitivity,
                              const std::array<double, parameters>& theta, const Value& value) {
  const auto along = [&](int k, long double by) {
    std::array<long double, parameters> moved;
    for (int i = 0; i < parameters; ++i) moved[i] = theta[i];
    moved[k] += by;
    return value(moved);
  };
  const auto difference = [&](int k, int i, long double h) {
    return (8 * (along(k, h)[i] - along(k, -h)[i]) - (along(k, 2 * h)[i] - along(k, -2 * h)[i])) /
           (12 * h);
  };
  const ValueL here = along(0, 0);
  long double size = 1e-3L;  // of the value [N s]
  for (int i = 0; i < rows; ++i) size += std::abs(here[i]);
  for (int k = 0; k < parameters; ++k) {
    const long double step = theta[k] == 0 ? 1e-5L : 1e-5L * std::abs(theta[k]);
    for (int i = 0; i <= rows; ++i) {
      const long double coarse = difference(k, i, step);
      const long double fine = difference(k, i, step / 2);
      const long double tolerance = 1e-9L * (std::abs(fine) + size / (10000 * step));
      if (std::abs(coarse - fine) > tolerance) return false;
      const double derivative = i < rows ? sensitivity.impulse[k][i] : sensitivity.cost[k];
      EXPECT_NEAR(derivative, static_cast<double>(fine), static_cast<double>(tolerance))
          << "parameter " << k << ", row " << i;
    }
  }
  return true;
}

template <int rows>
ValueL RowsOf(const ContactValue& value) {
  ValueL result;
  for (int r = 0; r < rows; ++r) result.push_back(value.impulse[DenseRowOf(r, rows)]);
  result.push_back(value.cost);
  return result;
}

template <int rows>
Vector6L SixRows(const LawVector<rows>& vector) {
  Vector6L six = Vector6L::Zero();
  for (int r = 0; r < rows; ++r) six[DenseRowOf(r, rows)] = vector[r];
  return six;
}

// R_t, R_n, c, then a coefficient per axis.
template <int rows>
struct RandomCone {
  static constexpr int kParameters = rows + 2;
  std::array<double, kParameters> theta;
  LawVector<rows> v_hat, v_c;

  explicit RandomCone(Random* random) {
    theta = {LogUniform(random, 0.01, 1), LogUniform(random, 0.01, 1), Uniform(random, 0, 0.5)};
    for (int k = 3; k < kParameters; ++k) theta[k] = Uniform(random, 0.1, 1.5);
    for (int r = 0; r < rows; ++r) {
      v_hat[r] = Uniform(random, -1, 1);
      v_c[r] = Uniform(random, -1, 1);
    }
  }
  LawVector<rows> Coefficients() const {
    LawVector<rows> mu{theta[3], theta[4], 1};
    for (int r = 3; r < rows; ++r) mu[r] = theta[r + 2];
    return mu;
  }
  ValueL At(const std::array<long double, kParameters>& moved) const {
    ExactContact exact;
    exact.v_hat = SixRows<rows>(v_hat);
    exact.mu[0] = moved[3];
    exact.mu[1] = moved[4];
    for (int r = 3; r < rows; ++r) exact.mu[DenseRowOf(r, rows)] = moved[r + 2];
    exact.rho = moved[0] * moved[3] * moved[3];
    exact.R_n = moved[1];
    exact.adhesion_impulse = moved[2];
    return RowsOf<rows>(exact.At(SixRows<rows>(v_c)));
  }
};

template <int rows>
void ExpectConesMatch() {
  Random random(rows);
  int tested = 0;
  std::array<int, 3> regions{};
  for (int trial = 0; trial < 300; ++trial) {
    const RandomCone<rows> cone(&random);
    using Law = GeneralCone<rows>;
    const auto p = Law::Parameters::Make(cone.theta[0], cone.theta[1], cone.Coefficients(),
                                         cone.v_hat, cone.theta[2]);
    const auto sensitivity = Law::SensitivityAt(p, cone.v_c);
    if (!ExpectMatchesDifferences<rows, rows + 2>(
            sensitivity, cone.theta, [&](const auto& theta) { return cone.At(theta); })) {
      continue;
    }
    ++tested;
    ++regions[static_cast<int>(Law::At(p, cone.v_c).region)];
  }
  EXPECT_GE(tested, 250);
  for (const int count : regions) EXPECT_GE(count, 10);
}

TEST(LawSensitivityTest, OfAGeneralConeOfThreeRowsIsWhatDifferencesSay) { ExpectConesMatch<3>(); }
TEST(LawSensitivityTest, OfAConeWithSpinIsWhatDifferencesSay) { ExpectConesMatch<4>(); }
TEST(LawSensitivityTest, OfARollingConeIsWhatDifferencesSay) { ExpectConesMatch<6>(); }

// One coefficient stands for both tangents, and adhesion starts from 0.
TEST(LawSensitivityTest, OfAFrictionContactIsThatOfAConeWithEqualCoefficients) {
  Random random(5);
  std::array<int, 2> tested{};
  for (int trial = 0; trial < 200; ++trial) {
    RandomCone<3> cone(&random);
    cone.theta[2] = 0;
    cone.theta[4] = cone.theta[3];
    FrictionContacts contacts;
    contacts.Resize(1);
    contacts.Set(0, {cone.theta[0],
                     cone.theta[1],
                     cone.theta[3],
                     {cone.v_hat[0], cone.v_hat[1], cone.v_hat[2]}});
    ContactVectors v_c;
    v_c.resize(1);
    v_c.Set(0, ContactVector<double>{cone.v_c[0], cone.v_c[1], cone.v_c[2]});
    const auto sensitivity = contacts.SensitivityAt(0, v_c);
    tested[ExpectMatchesDifferences<3, 5>(sensitivity, cone.theta,
                                          [&](const auto& theta) { return cone.At(theta); })]++;
  }
  EXPECT_GE(tested[1], 150);
}

// The limit from mu > 0: friction appears against the slip.
TEST(LawSensitivityTest, WithoutFrictionIsTheLimitFromAbove) {
  Random random(6);
  for (int trial = 0; trial < 50; ++trial) {
    RandomCone<3> cone(&random);
    cone.theta[2] = cone.theta[3] = cone.theta[4] = 0;
    cone.v_hat[2] = cone.v_c[2] + 0.3;
    const auto p = GeneralCone<3>::Parameters::Make(cone.theta[0], cone.theta[1],
                                                    cone.Coefficients(), cone.v_hat, 0);
    const auto sensitivity = GeneralCone<3>::SensitivityAt(p, cone.v_c);
    std::array<long double, 5> theta;
    std::copy(cone.theta.begin(), cone.theta.end(), theta.begin());
    const ValueL without = cone.At(theta);
    constexpr long double kMu = 1e-11L;
    theta[3] = theta[4] = kMu;
    const ValueL with = cone.At(theta);
    for (int r = 0; r < 3; ++r) {
      EXPECT_NEAR(sensitivity.impulse[3][r], (with[r] - without[r]) / kMu, 1e-6) << r;
      EXPECT_EQ(sensitivity.impulse[4][r], 0);
    }
    EXPECT_NEAR(sensitivity.cost[3], (with[3] - without[3]) / kMu, 1e-6);
  }
}

// mu, dt f_e, dt^2 k, d, mu n_0, eps.
template <bool lagged>
void ExpectHuntCrossleyMatches() {
  Random random(lagged ? 8 : 9);
  int tested = 0, open = 0;
  for (int trial = 0; trial < 300; ++trial) {
    constexpr double kTimeStep = 0.1;
    const LawVector<3> b{Uniform(&random, -1, 1), Uniform(&random, -1, 1), Uniform(&random, -1, 1)};
    const LawVector<3> v_c{Uniform(&random, -1, 1), Uniform(&random, -1, 1),
                           Uniform(&random, -1, 1)};
    const double mu = Uniform(&random, 0.1, 1), n_0 = Uniform(&random, 0.1, 2);
    const std::array<double, 6> theta{mu,
                                      kTimeStep * Uniform(&random, -5, 20),
                                      kTimeStep * kTimeStep * LogUniform(&random, 1, 1e4),
                                      Uniform(&random, 0.05, 1),
                                      mu * n_0,
                                      LogUniform(&random, 1e-3, 1)};
    using Law = HuntCrossley<lagged>;
    const auto p =
        Law::Parameters::Make(b, mu, theta[1] / kTimeStep, theta[2] / (kTimeStep * kTimeStep),
                              theta[3], n_0, theta[5], kTimeStep);
    Vector6L v = SixRows<3>(v_c);
    for (int r = 0; r < 3; ++r) v[r] += b[r];
    const auto exact = [&](const std::array<long double, 6>& moved) {
      ExactContact contact;
      contact.law = lagged ? ContactLaw::kHuntCrossleyLagged : ContactLaw::kHuntCrossleySimilar;
      contact.time_step = kTimeStep;
      contact.mu[0] = contact.mu[1] = moved[0];
      contact.elastic_force = moved[1] / kTimeStep;
      contact.stiffness = moved[2] / (static_cast<long double>(kTimeStep) * kTimeStep);
      contact.dissipation = moved[3];
      contact.lagged_normal_impulse = moved[4] / moved[0];
      contact.slip_speed = moved[5];
      return RowsOf<3>(contact.At(v));
    };
    tested += ExpectMatchesDifferences<3, 6>(Law::SensitivityAt(p, v_c), theta, exact);
    open += Law::At(p, v_c).gamma[2] == 0;
  }
  EXPECT_GE(tested, 200);
  EXPECT_GE(open, 10);
}

TEST(LawSensitivityTest, OfLaggedHuntCrossleyIsWhatDifferencesSay) {
  ExpectHuntCrossleyMatches<true>();
}
TEST(LawSensitivityTest, OfSimilarHuntCrossleyIsWhatDifferencesSay) {
  ExpectHuntCrossleyMatches<false>();
}

TEST(LawSensitivityTest, OfRowsIsWhatDifferencesSay) {
  Random random(10);
  std::array<int, 2> tested{}, inside{};
  for (int trial = 0; trial < 200; ++trial) {
    const double v_hat = Uniform(&random, -1, 1);
    const LawVector<1> v_c{Uniform(&random, -1, 1)};
    const double lower = Uniform(&random, -1, 0.2);
    const std::array<double, 3> theta{LogUniform(&random, 0.1, 10), lower,
                                      lower + Uniform(&random, 0.1, 1)};
    const auto p = BoundedRow::Parameters::Make(v_hat, theta[0], theta[1], theta[2]);
    const auto exact = [&](const auto& moved) {
      const RowValue value = ExactRow{v_hat, moved[0], moved[1], moved[2], 0}.At(v_c[0]);
      return ValueL{value.impulse, value.cost};
    };
    ++tested[ExpectMatchesDifferences<1, 3>(BoundedRow::SensitivityAt(p, v_c), theta, exact)];
    ++inside[BoundedRow::At(p, v_c).IsInside(p)];

    const auto unbounded = [&](const auto& moved) {
      const long double gamma = (static_cast<long double>(v_hat) - v_c[0]) / moved[0];
      return ValueL{gamma, moved[0] * gamma * gamma / 2};
    };
    const auto bilateral = BilateralRow::Parameters::Make(v_hat, theta[0]);
    EXPECT_TRUE((ExpectMatchesDifferences<1, 1>(BilateralRow::SensitivityAt(bilateral, v_c),
                                                {theta[0]}, unbounded)));
  }
  EXPECT_GE(tested[1], 190);
  EXPECT_GE(inside[0], 20);
  EXPECT_GE(inside[1], 20);
}

// A constant impulse: lower and upper move together, and one of them carries the derivative.
TEST(LawSensitivityTest, EqualBoundsMoveTheImpulseByOne) {
  for (const double v_hat : {-3.0, 3.0}) {
    const auto p = BoundedRow::Parameters::Make(v_hat, 2.0, 0.5, 0.5);
    const auto sensitivity = BoundedRow::SensitivityAt(p, {0.0});
    EXPECT_EQ(sensitivity.impulse[1][0] + sensitivity.impulse[2][0], 1);
    EXPECT_EQ(sensitivity.impulse[0][0], 0);
    EXPECT_EQ(BoundedRow::KinkMargin(p, {0.0}, {}), 1);
  }
}

// Sliding with u = 0.4, e_n = 0.6, mu = 0.5: opening at |0.6 + 0.2| / (0.5 + 0.1 + 0.2), sliding at
// |R_n u - mu R_t e_n| / (R_n u + mu R_t e_n).
TEST(KinkMarginTest, OfAConeIsTheLeastOfItsDistances) {
  const auto p = GeneralCone<3>::Parameters::Make(0.5, 1, {0.5, 0.5, 1}, {0.4, 0, 0.5}, 0);
  const LawVector<3> v_c{0, 0, -0.1};
  const KinkScales scales{.normal_speeds = 0.6};
  const double sliding = (1 * 0.4 - 0.5 * 0.5 * 0.6) / (1 * 0.4 + 0.5 * 0.5 * 0.6);
  EXPECT_NEAR(GeneralCone<3>::KinkMargin(p, v_c, scales), sliding, 1e-15);
  EXPECT_EQ(GeneralCone<3>::KinkMargin(p, v_c, {.normal_speeds = 0.6, .regularization = 0.1}), 0.1);
  // Open: neither sliding nor R matters. e_n + E = -0.4, sizes 0.5 + 1.1 + 0.2.
  EXPECT_NEAR(
      GeneralCone<3>::KinkMargin(p, {0, 0, 1.1}, {.normal_speeds = 1.6, .regularization = 0.1}),
      0.4 / 1.8, 1e-15);
}

TEST(KinkMarginTest, OfARowIsTheDistanceFromItsBounds) {
  const auto p = BoundedRow::Parameters::Make(1, 2, 0, 0.75);  // y = 0.5
  EXPECT_NEAR(BoundedRow::KinkMargin(p, {0.0}, {}), 0.25 / 1.25, 1e-15);
  EXPECT_EQ(BoundedRow::KinkMargin(p, {0.0}, {.normal_speeds = 0, .regularization = 0.1}), 0.1);
  EXPECT_EQ(BoundedRow::KinkMargin(p, {1.0}, {}), 0);  // y = 0
}

}  // namespace
}  // namespace sap::test
