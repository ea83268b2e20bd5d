#include "solver/cholesky/small_cholesky.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <limits>

#include "tests/solver/cholesky/positive_definite.h"

namespace sap {
namespace {

void Set(const Eigen::MatrixXd& A, SmallCholesky* cholesky) {
  const int n = static_cast<int>(A.rows());
  cholesky->Clear(n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) cholesky->at(i, j) = A(i, j);
  }
}

TEST(SmallCholeskyTest, SolutionsSatisfyTheSystemAtEverySize) {
  SmallCholesky cholesky;  // what a larger matrix has left is cleared
  for (int n = SmallCholesky::kMaxRows; n > 0; --n) {
    const Eigen::MatrixXd A = PositiveDefinite(n);
    Set(A, &cholesky);
    ASSERT_TRUE(cholesky.Factor());
    Eigen::VectorXd b(n);
    for (int i = 0; i < n; ++i) b[i] = std::sin(i + 1.0);
    Eigen::VectorXd x = b;
    cholesky.Solve(x.data());
    EXPECT_LE((A * x - b).norm(), 1e-14 * n * b.norm()) << n;
  }
}

TEST(SmallCholeskyTest, RefusesPivotsThatAreNotPositiveAndFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const int n : {1, 7, 12, SmallCholesky::kMaxRows}) {
    for (const int row : {0, n / 2, n - 1}) {
      for (const double pivot : {0.0, -1.0, kInfinity, std::nan("")}) {
        Eigen::MatrixXd A = PositiveDefinite(n);
        A(row, row) = pivot;
        SmallCholesky cholesky;
        Set(A, &cholesky);
        EXPECT_FALSE(cholesky.Factor()) << n << " " << row << " " << pivot;
      }
    }
  }
}

}  // namespace
}  // namespace sap
