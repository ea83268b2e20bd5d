#include "solver/cholesky/dense_cholesky.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/solver/cholesky/positive_definite.h"

namespace sap {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();
// Both sides of kScalarDofs, whole panels and parts of them.
const std::vector<int> kSizes{1,  2,  5,  6,  15, 16, 17,  18,  31,  62,
                              63, 64, 65, 66, 67, 68, 127, 128, 129, 200};

TEST(DenseCholeskyTest, FactorsMultiplyToTheMatrix) {
  for (const int n : kSizes) {
    const RowMajor A = PositiveDefinite(n);
    RowMajor factor = A;
    ASSERT_EQ(FactorTree(factor.data(), n), DenseStatus::kOk);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        long double sum = 0;
        for (int k = 0; k <= j; ++k) {
          const long double L_ik = k == i ? 1 : factor(i, k);
          const long double L_jk = k == j ? 1 : factor(j, k);
          sum += L_ik * L_jk / factor(k, k);
        }
        // What the certificate counts on.
        const double bound = (n + 1) * kUnitRoundoff * std::sqrt(A(i, i) * A(j, j));
        ASSERT_LE(std::abs(static_cast<double>(sum - A(i, j))), 2 * bound) << n;
      }
      for (int j = i + 1; j < n; ++j) ASSERT_EQ(factor(i, j), A(i, j));
    }
  }
}

TEST(DenseCholeskyTest, SolutionsSatisfyTheSystem) {
  for (const int n : kSizes) {
    const RowMajor A = PositiveDefinite(n);
    RowMajor factor = A;
    ASSERT_EQ(FactorTree(factor.data(), n), DenseStatus::kOk);
    Eigen::VectorXd b(n);
    for (int i = 0; i < n; ++i) b[i] = std::sin(i);
    Eigen::VectorXd x = b;
    SolveTree(factor.data(), n, x.data());
    EXPECT_LE((A * x - b).norm(), 1e-13 * b.norm()) << n;
  }
}

TEST(DenseCholeskyTest, FourRightHandSidesAreSolvedAsOneByOne) {
  for (const int n : kSizes) {
    RowMajor factor = PositiveDefinite(n);
    ASSERT_EQ(FactorTree(factor.data(), n), DenseStatus::kOk);
    for (const int first : {0, n / 3, n - 1}) {
      std::vector<Lanes4> four(n);
      std::vector<double> one[kNumLanes<double>];
      for (int lane = 0; lane < kNumLanes<double>; ++lane) {
        one[lane].assign(n, 0.0);
        for (int i = first; i < n; ++i) four[i][lane] = one[lane][i] = std::cos(i + lane * n);
        SolveUnitLower(factor.data(), n, one[lane].data());
      }
      SolveUnitLower(factor.data(), n, four.data(), first);
      for (int i = first; i < n; ++i) {
        for (int lane = 0; lane < kNumLanes<double>; ++lane) {
          EXPECT_NEAR(four[i][lane], one[lane][i], 1e-13) << n;
        }
      }
    }
  }
}

TEST(DenseCholeskyTest, AMatrixTimesAPowerOfTwoHasTheSameFactorBitForBit) {
  for (const int n : kSizes) {
    RowMajor factor = PositiveDefinite(n);
    RowMajor scaled = 0x1p-41 * factor;
    ASSERT_EQ(FactorTree(factor.data(), n), DenseStatus::kOk);
    ASSERT_EQ(FactorTree(scaled.data(), n), DenseStatus::kOk);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) ASSERT_EQ(scaled(i, j), factor(i, j)) << n;
      ASSERT_EQ(scaled(i, i), 0x1p41 * factor(i, i)) << n;
    }
  }
}

TEST(DenseCholeskyTest, PivotsThatAreNotPositiveAndFiniteAreRefusedWhereverTheyStand) {
  for (const int n : kSizes) {
    for (const int at : {0, n / 2, n - 1}) {
      for (const double pivot : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()}) {
        RowMajor A = PositiveDefinite(n);
        A(at, at) = pivot;
        EXPECT_EQ(FactorTree(A.data(), n), DenseStatus::kNotPositiveDefinite) << n << " " << at;
      }
    }
  }
}

TEST(DenseCholeskyTest, InversesOfTheLeastPivotsStayFinite) {
  for (const int n : {6, 100}) {
    RowMajor A = 1e-320 * RowMajor::Identity(n, n);
    ASSERT_EQ(FactorTree(A.data(), n), DenseStatus::kOk);
    EXPECT_EQ(A(n - 1, n - 1), std::numeric_limits<double>::max());
    EXPECT_EQ(A(n - 1, 0), 0);
  }
}

TEST(DenseCholeskyTest, LargeFactorizationsStopOnRequest) {
  RowMajor A = PositiveDefinite(1000);
  const std::atomic<bool> cancelled{true};
  const StopToken cancelled_token(&cancelled, StopToken::Clock::time_point::max());
  EXPECT_EQ(FactorTree(A.data(), 1000, cancelled_token), DenseStatus::kStopped);
  // Meanwhile as well: this one takes far longer than the deadline leaves.
  A = PositiveDefinite(3000);
  const StopToken soon(nullptr, StopToken::Clock::now() + std::chrono::milliseconds(1));
  EXPECT_EQ(FactorTree(A.data(), 3000, soon), DenseStatus::kStopped);
}

}  // namespace
}  // namespace sap
