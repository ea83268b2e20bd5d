#include "solver/cholesky/small_cholesky.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <limits>
#include <vector>

#include "solver/cholesky/dense_front.h"
#include "solver/cholesky/front_solve.h"
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

// Rows that begin anywhere, as they do where trees do not touch or branches do not meet.
Eigen::MatrixXd WithZerosBeforeRows(int n) {
  Eigen::MatrixXd A = PositiveDefinite(n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < (7 * i + 3) % (i + 1); ++j) A(i, j) = A(j, i) = 0;
  }
  return A;
}

TEST(SmallCholeskyTest, ZerosBeforeRowsAreSkippedWithTheSameBits) {
  for (int n = 1; n <= SmallCholesky::kMaxRows; ++n) {
    const Eigen::MatrixXd A = WithZerosBeforeRows(n);
    SmallCholesky cholesky;
    Set(A, &cholesky);
    ASSERT_TRUE(cholesky.Factor());
    // All of it by the kernel of fronts.
    const FrontLayout<double> layout(n, 0);
    std::vector<double> entries(layout.entries());
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        entries[layout.PivotRowStart(i) + j * FrontLayout<double>::kLanes] = A(i, j);
      }
    }
    ASSERT_EQ(DenseFront<double>(layout, entries.data()).FactorPivots(StopToken()),
              DenseStatus::kOk);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        ASSERT_EQ(cholesky.at(i, j),
                  entries[layout.PivotRowStart(i) + j * FrontLayout<double>::kLanes])
            << n << " " << i << " " << j;
      }
    }
    Eigen::VectorXd x(n);
    for (int i = 0; i < n; ++i) x[i] = std::sin(i + 1.0);
    const Eigen::VectorXd b = x;
    cholesky.Solve(x.data());
    EXPECT_LE((A * x - b).norm(), 1e-14 * n * b.norm()) << n;
  }
}

// Islands of a joint or two.
TEST(SmallCholeskyTest, MatricesOfOneSliverAreSolvedToTheBitsOfFronts) {
  constexpr int kLanes = FrontLayout<double>::kLanes;
  for (int n = 1; n <= kLanes; ++n) {
    const Eigen::MatrixXd A = PositiveDefinite(n);
    SmallCholesky cholesky;
    Set(A, &cholesky);
    const FrontLayout<double> layout(n, 0);
    std::vector<double> entries(layout.entries());
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) entries[layout.PivotRowStart(i) + j * kLanes] = A(i, j);
    }
    ASSERT_TRUE(cholesky.Factor());
    ASSERT_EQ(DenseFront<double>(layout, entries.data()).FactorPivots(StopToken()),
              DenseStatus::kOk);
    std::vector<double> x(kLanes);
    for (int i = 0; i < n; ++i) x[i] = std::sin(i + 1.0);
    std::vector<double> expected = x;
    cholesky.Solve(x.data());
    std::vector<double> sums(kLanes * kLanes);
    ForwardSolvePivots(layout, entries.data(), expected.data());
    BackwardSolvePivots(layout, entries.data(), expected.data(), sums.data());
    EXPECT_EQ(x, expected) << n;
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
