#include "solver/cholesky/large_tree.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/solver/cholesky/mechanisms.h"
#include "tests/solver/cholesky/positive_definite.h"

namespace sap {
namespace {

const std::vector<Parents> kMechanisms{
    Limbed({11}),                  // a chain of 17
    Limbed({5, 3, 4}),             // 18
    Limbed({4, 4, 5, 5, 5, 1}),    // 30
    Limbed({9, 8, 12, 7, 3, 10}),  // 55
    Limbed({20, 20, 20}),          // 66
    Limbed({1, 1, 1, 1, 30, 40, 50}),
};

struct Factored {
  RowMajor A, U;
  std::vector<int> ends;

  explicit Factored(const RowMajor& matrix) : A(matrix), U(matrix), ends(matrix.rows()) {
    EXPECT_EQ(FactorLargeTree(U.data(), n(), ends.data(), StopToken()), DenseStatus::kOk);
  }
  int n() const { return static_cast<int>(A.rows()); }
  RowMajor UnitUpper() const {
    RowMajor unit = U.triangularView<Eigen::StrictlyUpper>();
    unit.diagonal().setOnes();
    return unit;
  }
};

Eigen::VectorXd Some(int n) {
  Eigen::VectorXd x(n);
  for (int i = 0; i < n; ++i) x[i] = std::sin(3 * i + 1);
  return x;
}

TEST(LargeTreeTest, RowsOfTheFactorEndWithTheirBranches) {
  for (const Parents& parent : kMechanisms) {
    const Factored tree(MassMatrix(parent));
    EXPECT_EQ(tree.ends, EndsOfBranches(parent));
    for (int i = 0; i < tree.n(); ++i) {
      for (int j = i + 1; j < tree.n(); ++j) {
        if (HangsOn(parent, j, i)) continue;
        ASSERT_EQ(tree.U(i, j), 0) << i << " " << j;
      }
    }
    const RowMajor unit = tree.UnitUpper();
    const RowMajor product =
        unit * tree.U.diagonal().cwiseInverse().asDiagonal() * unit.transpose();
    EXPECT_LE((product - tree.A).norm(), 1e-14 * tree.A.norm());
  }
}

// Rows without the nesting of branches: a band, whose zeros in the corner stay, and one long row.
TEST(LargeTreeTest, RowsEndWhereThoseThatTheyReachDo) {
  RowMajor A = RowMajor(PositiveDefinite(40));
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 40; ++j) {
      if (std::abs(i - j) > 2) A(i, j) = 0;
    }
  }
  A(30, 39) = A(39, 30) = A(10, 20) = A(20, 10) = 0.25;
  const Factored tree(A);
  for (int i = 0; i < 40; ++i) {
    for (int j = i + 1; j < tree.ends[i]; ++j) ASSERT_LE(tree.ends[j], tree.ends[i]);
  }
  const Eigen::VectorXd b = Some(40);
  Eigen::VectorXd x = b;
  SolveLargeTree(tree.U.data(), 40, tree.ends.data(), x.data());
  EXPECT_LE((A * x - b).norm(), 1e-14 * b.norm());
}

TEST(LargeTreeTest, SolutionsAndProductsAreThoseOfTheMatrix) {
  for (const Parents& parent : kMechanisms) {
    const Factored tree(MassMatrix(parent));
    const int n = tree.n();
    const Eigen::VectorXd b = Some(n);
    const Eigen::VectorXd exact = tree.A.llt().solve(b);
    Eigen::VectorXd x = b;
    SolveLargeTree(tree.U.data(), n, tree.ends.data(), x.data());
    EXPECT_LE((x - exact).norm(), 1e-12 * exact.norm()) << n;
    Eigen::VectorXd once = b;
    ASSERT_EQ(SolveOnceWithLargeTree(tree.A.data(), n, once.data(), StopToken()), DenseStatus::kOk);
    EXPECT_LE((once - exact).norm(), 1e-12 * exact.norm()) << n;
    Eigen::VectorXd product(n);
    RowMajor upper = tree.A.triangularView<Eigen::Upper>();
    MultiplyLargeTree(upper.data(), n, tree.ends.data(), b.data(), product.data());
    EXPECT_LE((product - tree.A * b).norm(), 1e-14 * product.norm()) << n;
  }
}

// Right-hand sides with entries in a few rows, as a contact has them.
TEST(LargeTreeTest, ListedRowsAreAllThatAHalfSolveFills) {
  for (const Parents& parent : kMechanisms) {
    const Factored tree(MassMatrix(parent));
    const int n = tree.n();
    const RowMajor unit = tree.UnitUpper();
    for (const std::vector<int>& entries :
         {std::vector<int>{n - 1}, {n / 2}, {0}, {3, n - 2}, {n / 3, n / 2, n - 1}}) {
      RowMajor B = RowMajor::Zero(n, 4);
      for (const int row : entries) B.row(row) = Some(4).transpose() * (row + 1);
      std::vector<int> rows(n);
      const int count = ListRows(
          tree.ends.data(), n, [&](int i) { return !B.row(i).isZero(0); }, rows.data());
      std::vector<Lanes4> x(count);
      for (int p = 0; p < count; ++p) {
        for (int lane = 0; lane < 4; ++lane) x[p][lane] = B(rows[p], lane);
      }
      HalfSolveRows(tree.U.data(), n, rows.data(), count, x.data());
      RowMajor filled = RowMajor::Zero(n, 4);
      for (int p = 0; p < count; ++p) {
        for (int lane = 0; lane < 4; ++lane) filled(rows[p], lane) = x[p][lane];
        // On a row listed hangs one with entries.
        EXPECT_TRUE(std::any_of(entries.begin(), entries.end(),
                                [&](int row) { return HangsOn(parent, row, rows[p]); }));
      }
      const RowMajor exact = unit.triangularView<Eigen::Upper>().solve(B);
      EXPECT_LE((filled - exact).norm(), 1e-12 * exact.norm()) << n;
    }
  }
}

}  // namespace
}  // namespace sap
