#include "solver/laws/de_saxce.h"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "tests/solver/laws/dense_cones.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

template <int k>
ConeVector<k> Draw(Random* random) {
  ConeVector<k> x;
  for (double& component : x) component = Uniform(random, -1, 1);
  return x;
}
template <int k>
void ExpectInverseOfDenseTwin() {
  Random random(k);
  for (int draw = 0; draw < 200; ++draw) {
    ConeVector<k> z = Draw<k>(&random), u = Draw<k>(&random);
    z[0] = 1.1 * TailNorm(z);
    u[0] = 1.1 * TailNorm(u);
    const ConeScaling<k> scaling(ConePair<k>::Make(z, u));
    const double R_n = LogUniform(&random, 1e-6, 10), rho = LogUniform(&random, 1e-6, 10);
    ConeVector<k> slip = Draw<k>(&random);
    // Against n, where the denominator is smallest, in every other draw.
    if (draw % 2 == 0) {
      for (int i = 1; i < k; ++i) slip[i] = scaling.n()[i - 1];
    }
    const DeSaxceBlock<k> shift(scaling, R_n, rho, slip);
    const ConeBlock<k> M(scaling, R_n, rho);

    DenseVector<k> t = ToDense<k>(slip);
    t[0] = 0;
    DenseMatrix<k> T = DenseMatrix<k>::Identity();
    T.row(0) += t.transpose() / t.norm();
    EXPECT_LE((MatrixOf<k>([&](const auto& x) { return shift.Turn(x); }) - T).norm(), 1e-14);

    const DenseMatrix<k> W = MatrixOf<k>([&](const auto& x) { return scaling.Scale(x); });
    DenseVector<k> Rb = DenseVector<k>::Constant(rho);
    Rb[0] = R_n;
    const DenseMatrix<k> matrix = T * Rb.asDiagonal().toDenseMatrix() + W * W;
    const DenseMatrix<k> inverse = MatrixOf<k>([&](const auto& x) { return shift.Multiply(M, x); });
    EXPECT_LE((matrix * inverse - DenseMatrix<k>::Identity()).norm(),
              1e-13 * matrix.norm() * inverse.norm());
  }
}

TEST(DeSaxceTest, ItsBlockIsTheInverseOfItsDenseTwin) {
  ExpectInverseOfDenseTwin<3>();
  ExpectInverseOfDenseTwin<4>();
  ExpectInverseOfDenseTwin<6>();
}

TEST(DeSaxceTest, WithoutSlipItIsTheConvexBlock) {
  const ConeScaling<3> scaling(ConePair<3>::Make({2, 1, 0}, {3, 0, 1}));
  const ConeBlock<3> M(scaling, 0.1, 0.2);
  const ConeVector<3> x{1, 2, 3};
  const DeSaxceBlock<3> shift(scaling, 0.1, 0.2, {5, 0, 0});
  EXPECT_EQ(shift.Turn(x), x);
  EXPECT_EQ(shift.Multiply(M, x), M * x);
}

}  // namespace
}  // namespace sap::test
