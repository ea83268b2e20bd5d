#include "client/c/tree_factorization.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <random>

namespace sap {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int kSize = 12;

// A matrix that is 0 where neither dof is an ancestor of the other, as a mass matrix.
Matrix MassMatrixOfTree(unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  int parent[kSize];
  for (int i = 0; i < kSize; ++i) {
    parent[i] = std::uniform_int_distribution<int>(-1, i - 1)(generator);
  }
  Matrix rows = Matrix::Identity(kSize, kSize);
  for (int i = 0; i < kSize; ++i) {
    for (int j = parent[i]; j >= 0; j = parent[j]) rows(i, j) = normal(generator);
  }
  return rows.transpose() * rows;
}

TEST(TreeFactorizationTest, SolutionIsThatOfEigen) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Matrix A = MassMatrixOfTree(seed);
    const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(kSize, -1.0, 2.0);
    Matrix factors = A;
    Eigen::VectorXd x = b;
    SolveInPlace({factors.data(), kSize * kSize}, {x.data(), kSize});
    const Eigen::VectorXd expected = A.ldlt().solve(b);
    EXPECT_LT((x - expected).norm(), 1e-9 * expected.norm()) << "seed " << seed;
  }
}

TEST(TreeFactorizationTest, MatrixOfATreeHasNoFillIn) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Matrix A = MassMatrixOfTree(seed);
    Matrix factors = A;
    Eigen::VectorXd x = Eigen::VectorXd::Ones(kSize);
    SolveInPlace({factors.data(), kSize * kSize}, {x.data(), kSize});
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < i; ++j) {
        if (A(i, j) != 0.0) continue;
        EXPECT_EQ(factors(i, j), 0.0) << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace sap
