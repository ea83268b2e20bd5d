#include "solver/laws/cone_scaling.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "tests/solver/laws/dense_cones.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// A point inside the cone, its distance from the surface this share of its size.
template <int k>
ConeVector<k> Inside(Random* random, double share) {
  ConeVector<k> x;
  for (double& component : x) component = Uniform(random, -1, 1);
  x[0] = TailNorm(x) * (1 + share);
  return PlusScaled(ConeVector<k>{}, LogUniform(random, 1e-3, 1e3), x);
}

template <int k>
void ExpectScaling(double share) {
  Random random(k);
  for (int draw = 0; draw < 100; ++draw) {
    const auto pair = ConePair<k>::Make(Inside<k>(&random, share), Inside<k>(&random, share));
    const ConeScaling<k> scaling(pair);
    const DenseMatrix<k> W = MatrixOf<k>([&](const auto& x) { return scaling.Scale(x); });
    const DenseVector<k> z = ToDense<k>(pair.z), u = ToDense<k>(pair.u);
    const DenseVector<k> l = ToDense<k>(scaling.lambda());
    const double rounding = 1e-13 / share * (1 + scaling.E() * scaling.E());
    EXPECT_LE((W * z - l).norm(), rounding * l.norm());
    EXPECT_LE((ToDense<k>(scaling.Unscale(pair.u)) - l).norm(), rounding * l.norm());
    EXPECT_LE((W - W.transpose()).norm(), 1e-15 * W.norm());
    // W W takes z to u.
    EXPECT_LE((W * (W * z) - u).norm(), rounding * u.norm());

    const double R_n = LogUniform(&random, 1e-6, 1), rho = LogUniform(&random, 1e-6, 1);
    DenseMatrix<k> inverse = W * W;
    inverse.diagonal().array() += rho;
    inverse(0, 0) += R_n - rho;
    const ConeBlock<k> block(scaling, R_n, rho);
    DenseMatrix<k> entries, products;
    for (int i = 0; i < k; ++i) {
      products.col(i) = ToDense<k>(block * UnitOfCone<k>(i));
      for (int j = 0; j < k; ++j) entries(i, j) = block(i, j);
    }
    const DenseMatrix<k> identity = DenseMatrix<k>::Identity();
    const double condition = inverse.norm() * entries.norm();
    EXPECT_LE((inverse * entries - identity).norm(), 1e-14 * condition);
    EXPECT_LE((inverse * products - identity).norm(), 1e-14 * condition);
  }
}

TEST(ConeScalingTest, ScalesBothPointsToOneAndInvertsAsItsDenseTwin) {
  for (const double share : {1.0, 1e-2, 1e-4}) {
    ExpectScaling<3>(share);
    ExpectScaling<4>(share);
    ExpectScaling<6>(share);
  }
}

TEST(ConeScalingTest, AxisAloneIsAScalar) {
  const auto pair = ConePair<3>::Make({4, 0, 0}, {9, 0, 0});
  const ConeScaling<3> scaling(pair);
  EXPECT_DOUBLE_EQ(scaling.E(), 1);
  EXPECT_DOUBLE_EQ(scaling.eta(), 1.5);
  EXPECT_DOUBLE_EQ(scaling.lambda()[0], 6);
}

// Determinants after a step, which are carried along, are those of the points themselves.
TEST(ConeScalingTest, DeterminantsAreCarriedAlongAStep) {
  Random random(1);
  for (int draw = 0; draw < 100; ++draw) {
    const auto pair = ConePair<4>::Make(Inside<4>(&random, 0.5), Inside<4>(&random, 0.5));
    const ConeScaling<4> scaling(pair);
    ConeVector<4> dz, du;
    for (int i = 0; i < 4; ++i) {
      dz[i] = 0.1 * pair.z[0] * Uniform(&random, -1, 1);
      du[i] = 0.1 * pair.u[0] * Uniform(&random, -1, 1);
    }
    const auto after = scaling.After(pair, 0.7, dz, du, scaling.Scale(dz), scaling.Unscale(du));
    EXPECT_NEAR(after.det_z, ConeDeterminant(after.z), 1e-12 * after.z[0] * after.z[0]);
    EXPECT_NEAR(after.det_u, ConeDeterminant(after.u), 1e-12 * after.u[0] * after.u[0]);
    EXPECT_NEAR(after.product, FullDot(after.z, after.u), 1e-12 * after.z[0] * after.u[0]);
  }
}

TEST(ConeScalingTest, LargestStepEndsOnTheSurface) {
  Random random(2);
  for (int draw = 0; draw < 1000; ++draw) {
    const ConeVector<6> x = Inside<6>(&random, 0.1);
    ConeVector<6> dx;
    for (double& component : dx) component = x[0] * Uniform(&random, -1, 1);
    const double step = LargestStepInCone(x, dx);
    if (!std::isfinite(step)) {
      EXPECT_GE(ConeDeterminant(dx), 0);
      EXPECT_GE(dx[0], 0);
      continue;
    }
    const ConeVector<6> end = PlusScaled(x, step, dx);
    const double size = x[0] + step * std::abs(dx[0]);
    EXPECT_NEAR(ConeDeterminant(end), 0, 1e-12 * size * size);
    EXPECT_GT(ConeDeterminant(PlusScaled(x, 0.5 * step, dx)), 0);
  }
}

TEST(ConeScalingTest, QuotientUndoesTheProduct) {
  Random random(3);
  for (int draw = 0; draw < 100; ++draw) {
    const ConeVector<4> l = Inside<4>(&random, 0.5), x = Inside<4>(&random, 0.5);
    const ConeVector<4> back = ConeQuotient(ConeProduct(l, x), l);
    EXPECT_LE((ToDense<4>(back) - ToDense<4>(x)).norm(), 1e-13 * x[0]);
  }
}

}  // namespace
}  // namespace sap::test
