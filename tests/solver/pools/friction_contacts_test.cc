#include "solver/pools/friction_contacts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

constexpr double kTolerance = 64 * std::numeric_limits<double>::epsilon();

// Thirteen contacts of all kinds: whole groups of lanes and a remainder, wherever a range starts.
struct Pool {
  static constexpr int kSize = 13;
  FrictionContacts contacts;
  ContactVectors v_c, d, gamma;
  ContactMatrices G;
  DualDirections s;

  explicit Pool(uint64_t seed) {
    Random random(seed);
    contacts.Resize(kSize);
    for (ContactVectors* vectors : {&v_c, &d, &gamma}) vectors->resize(kSize);
    G.resize(kSize);
    s.resize(kSize);
    for (int i = 0; i < kSize; ++i) {
      const double mu = i % 5 == 0 ? 0.0 : Uniform(&random, 0.1, 2);
      contacts.Set(i, {LogUniform(&random, 1e-3, 1),
                       LogUniform(&random, 1e-2, 1),
                       mu,
                       {Uniform(&random, -1, 1), Uniform(&random, -1, 1), Uniform(&random, 0, 1)}});
      v_c.Set(i, RandomTriple(&random));
      d.Set(i, RandomTriple(&random));
      s.x[i] = Uniform(&random, -0.7, 0.7);
      s.y[i] = Uniform(&random, -0.7, 0.7);
    }
  }
  static ContactVector<double> RandomTriple(Random* random) {
    return {Uniform(random, -1, 1), Uniform(random, -1, 1), Uniform(random, -1, 1)};
  }
};

void ExpectNear(const ContactVector<double>& a, const ContactVector<double>& b) {
  const double scale = std::abs(a.x) + std::abs(a.y) + std::abs(a.n);
  EXPECT_NEAR(a.x, b.x, kTolerance * scale);
  EXPECT_NEAR(a.y, b.y, kTolerance * scale);
  EXPECT_NEAR(a.n, b.n, kTolerance * scale);
}

void ExpectNear(const SymmetricMatrix3<double>& a, const SymmetricMatrix3<double>& b) {
  const double scale = a.xx + a.yy + a.nn;
  EXPECT_NEAR(a.xx, b.xx, kTolerance * scale);
  EXPECT_NEAR(a.xy, b.xy, kTolerance * scale);
  EXPECT_NEAR(a.yy, b.yy, kTolerance * scale);
  EXPECT_NEAR(a.xn, b.xn, kTolerance * scale);
  EXPECT_NEAR(a.yn, b.yn, kTolerance * scale);
  EXPECT_NEAR(a.nn, b.nn, kTolerance * scale);
}

class FrictionContactsTest : public ::testing::TestWithParam<int> {};

TEST_P(FrictionContactsTest, RangeEqualsItsContactsOneByOne) {
  const int begin = GetParam();
  Pool pool(100 + begin);
  Pool one_by_one = pool;
  for (int end = begin; end <= Pool::kSize; ++end) {
    const CostSum cost = pool.contacts.Impulses(begin, end, pool.v_c, &pool.gamma);
    pool.contacts.Hessians(begin, end, pool.v_c, pool.s, &pool.G);
    const LineSlope slope = pool.contacts.AlongLine(begin, end, pool.v_c, pool.d, 0.3);
    double sum_cost = 0, sum_first = 0, sum_second = 0;
    for (int i = begin; i < end; ++i) {
      sum_cost += one_by_one.contacts.Impulses(i, i + 1, one_by_one.v_c, &one_by_one.gamma).value;
      one_by_one.contacts.Hessians(i, i + 1, one_by_one.v_c, one_by_one.s, &one_by_one.G);
      const LineSlope part =
          one_by_one.contacts.AlongLine(i, i + 1, one_by_one.v_c, one_by_one.d, 0.3);
      sum_first += part.first;
      sum_second += part.second;
      ExpectNear(pool.gamma.At(i, double{}), one_by_one.gamma.At(i, double{}));
      ExpectNear(pool.G.At(i), one_by_one.G.At(i));
    }
    EXPECT_NEAR(cost.value, sum_cost, kTolerance * sum_cost);
    EXPECT_EQ(cost.magnitude, cost.value);  // no cost is negative
    EXPECT_NEAR(slope.first, sum_first, kTolerance * 100);
    EXPECT_NEAR(slope.second, sum_second, kTolerance * sum_second);
  }
}

TEST_P(FrictionContactsTest, DualDirectionsOfARangeEqualThoseOfItsContactsOneByOne) {
  const int begin = GetParam();
  Pool pool(200 + begin);
  Pool one_by_one = pool;
  pool.contacts.UpdateDualDirections(begin, Pool::kSize, pool.v_c, pool.d, &pool.s);
  for (int i = begin; i < Pool::kSize; ++i) {
    one_by_one.contacts.UpdateDualDirections(i, i + 1, pool.v_c, pool.d, &one_by_one.s);
    EXPECT_NEAR(pool.s.x[i], one_by_one.s.x[i], kTolerance);
    EXPECT_NEAR(pool.s.y[i], one_by_one.s.y[i], kTolerance);
  }
}

TEST_P(FrictionContactsTest, RangeLeavesEverythingElseAlone) {
  const int begin = GetParam();
  const int end = std::min(begin + 6, Pool::kSize);
  Pool pool(300 + begin);
  for (double& value : pool.gamma.x) value = 77;
  pool.contacts.Impulses(begin, end, pool.v_c, &pool.gamma);
  for (int i = 0; i < Pool::kSize; ++i) {
    if (i < begin || i >= end) {
      EXPECT_EQ(pool.gamma.x[i], 77) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryStart, FrictionContactsTest, ::testing::Range(0, Pool::kSize));

TEST(FrictionContactsTest, PlainHessianIsThatOfTheSlipDirection) {
  Pool pool(1);
  ContactMatrices plain = pool.G;
  pool.contacts.Hessians(0, Pool::kSize, pool.v_c, &plain);
  for (int i = 0; i < Pool::kSize; ++i) {
    const auto point = ProjectOnCone(pool.contacts.At(i, double{}), pool.v_c.At(i, double{}));
    pool.s.x[i] = point.t_hat_x;
    pool.s.y[i] = point.t_hat_y;
  }
  pool.contacts.Hessians(0, Pool::kSize, pool.v_c, pool.s, &pool.G);
  for (int i = 0; i < Pool::kSize; ++i) ExpectNear(plain.At(i), pool.G.At(i));
}

TEST(FrictionContactsTest, DualDirectionsStartAsThoseOfTheImpulses) {
  Pool pool(2);
  pool.contacts.Impulses(0, Pool::kSize, pool.v_c, &pool.gamma);
  pool.contacts.StartDualDirections(0, Pool::kSize, pool.v_c, pool.gamma, &pool.s);
  for (int i = 0; i < Pool::kSize; ++i) {
    const double bound = pool.contacts.At(i, double{}).mu * pool.gamma.n[i];
    EXPECT_NEAR(pool.s.x[i] * bound, pool.gamma.x[i], kTolerance);
    EXPECT_NEAR(pool.s.y[i] * bound, pool.gamma.y[i], kTolerance);
    EXPECT_LE(std::hypot(pool.s.x[i], pool.s.y[i]), 1 + kTolerance);
  }
}

}  // namespace
}  // namespace sap::test
