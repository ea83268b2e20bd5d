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

// Factors in place.
struct Factor {
  RowMajor entries;
  std::vector<int> ends;
  DenseStatus status;

  explicit Factor(const RowMajor& A, const StopToken& stop = StopToken())
      : entries(A), ends(A.rows()), status(FactorTree(entries.data(), n(), ends.data(), stop)) {}
  int n() const { return static_cast<int>(entries.rows()); }
  bool is_upper() const { return n() > kScalarDofs; }
  TreeFactor tree() const { return {entries.data(), ends.data()}; }
  // Entry of L or U.
  long double UnitTriangular(int i, int k) const {
    if (i == k) return 1;
    return (k > i) == is_upper() ? entries(i, k) : 0;
  }
};

TEST(DenseCholeskyTest, FactorsMultiplyToTheMatrix) {
  for (const int n : kSizes) {
    const RowMajor A = PositiveDefinite(n);
    const Factor factor(A);
    ASSERT_EQ(factor.status, DenseStatus::kOk);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j <= i; ++j) {
        long double sum = 0;
        for (int k = 0; k < n; ++k) {
          sum += factor.UnitTriangular(i, k) * factor.UnitTriangular(j, k) / factor.entries(k, k);
        }
        // Bounds that the certificate relies on.
        const double bound = (n + 1) * kUnitRoundoff * std::sqrt(A(i, i) * A(j, j));
        ASSERT_LE(std::abs(static_cast<double>(sum - A(i, j))), 2 * bound) << n;
      }
      for (int j = 0; j < n; ++j) {
        if (j == i || (j > i) == factor.is_upper()) continue;
        ASSERT_EQ(factor.entries(i, j), A(i, j));
      }
    }
  }
}

TEST(DenseCholeskyTest, SolutionsSatisfyTheSystem) {
  for (const int n : kSizes) {
    const RowMajor A = PositiveDefinite(n);
    const Factor factor(A);
    ASSERT_EQ(factor.status, DenseStatus::kOk);
    Eigen::VectorXd b(n);
    for (int i = 0; i < n; ++i) b[i] = std::sin(i);
    Eigen::VectorXd x = b;
    SolveTree(factor.tree(), n, x.data());
    EXPECT_LE((A * x - b).norm(), 1e-13 * b.norm()) << n;
    RowMajor overwritten = A;
    Eigen::VectorXd once = b;
    ASSERT_EQ(SolveOnceWithTree(overwritten.data(), n, once.data()), DenseStatus::kOk);
    EXPECT_LE((A * once - b).norm(), 1e-13 * b.norm()) << n;
    // b' A^-1 b by half of a solve.
    Eigen::VectorXd half = b;
    HalfSolveTree(factor.tree(), n, half.data());
    const double square = half.cwiseAbs2().dot(factor.entries.diagonal());
    EXPECT_NEAR(square, b.dot(x), 1e-13 * square) << n;
  }
}

TEST(DenseCholeskyTest, FourRightHandSidesAreSolvedAsOneByOne) {
  for (const int n : kSizes) {
    RowMajor factor = PositiveDefinite(n);
    ASSERT_TRUE(FactorDense(factor.data(), n));
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
    const RowMajor A = PositiveDefinite(n);
    const Factor factor(A);
    const Factor scaled(0x1p-41 * A);
    ASSERT_EQ(factor.status, DenseStatus::kOk);
    ASSERT_EQ(scaled.status, DenseStatus::kOk);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        ASSERT_EQ(scaled.UnitTriangular(i, j), factor.UnitTriangular(i, j)) << n;
      }
      ASSERT_EQ(scaled.entries(i, i), 0x1p41 * factor.entries(i, i)) << n;
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
        EXPECT_EQ(Factor(A).status, DenseStatus::kNotPositiveDefinite) << n << " " << at;
      }
    }
  }
}

TEST(DenseCholeskyTest, InversesOfTheLeastPivotsStayFinite) {
  for (const int n : {6, 100}) {
    const Factor factor(1e-320 * RowMajor::Identity(n, n));
    ASSERT_EQ(factor.status, DenseStatus::kOk);
    EXPECT_EQ(factor.entries(n - 1, n - 1), std::numeric_limits<double>::max());
    EXPECT_EQ(factor.UnitTriangular(n - 1, 0), 0);
    EXPECT_EQ(factor.UnitTriangular(0, n - 1), 0);
  }
}

TEST(DenseCholeskyTest, LargeFactorizationsStopOnRequest) {
  const RowMajor A = PositiveDefinite(1000);
  const std::atomic<bool> cancelled{true};
  const StopToken cancelled_token(&cancelled, StopToken::Clock::time_point::max());
  EXPECT_EQ(Factor(A, cancelled_token).status, DenseStatus::kStopped);
  // Meanwhile as well: this one takes far longer than the deadline leaves.
  const RowMajor larger = PositiveDefinite(3000);
  const StopToken soon(nullptr, StopToken::Clock::now() + std::chrono::milliseconds(1));
  EXPECT_EQ(Factor(larger, soon).status, DenseStatus::kStopped);
}

}  // namespace
}  // namespace sap
