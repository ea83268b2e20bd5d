#include "solver/pools/jacobian_kernels.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <vector>

#include "solver/pools/friction_contacts.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A block of a large tree: sizes with every remainder of four, a few columns that are not zero.
struct Block {
  RowMajor J;
  std::vector<int> list;
  Eigen::VectorXd v, f;

  Block(int rows, int n, Random* random) : J(RowMajor::Zero(rows, n)), list(n), v(n), f(n) {
    for (int i = 0; i < n; ++i) {
      v[i] = Uniform(random, -1, 1);
      f[i] = Uniform(random, -1, 1);
      if (Uniform(random, 0, 1) > 0.3 && i != n - 1) continue;  // the last one moves
      for (int r = 0; r < rows; ++r) J(r, i) = Uniform(random, -1, 1);
    }
    ColumnFours::Find(J.data(), rows, n, list.data());
  }
  int n() const { return static_cast<int>(J.cols()); }
  ColumnFours columns() const { return ColumnFours(list.data()); }
};

template <int rows>
LawVector<rows> RandomVector(Random* random) {
  LawVector<rows> vector;
  for (double& component : vector) component = Uniform(random, -1, 1);
  return vector;
}
template <typename Vector>
Eigen::VectorXd AsEigen(const Vector& vector) {
  const auto components = ToLawVector(vector);
  return Eigen::Map<const Eigen::VectorXd>(components.data(), components.size());
}

// Each kernel on the listed columns against the product of whole matrices.
template <typename Vector, int rows>
void CheckKernels(int n, Random* random) {
  constexpr double kTolerance = 1e-14;
  const Block block(rows, n, random);
  Vector gamma, errors;
  FromLawVector(RandomVector<rows>(random), &gamma);
  FromLawVector(RandomVector<rows>(random), &errors);

  Vector v_c = errors;
  AddJv(block.J.data(), n, block.columns(), block.v.data(), &v_c);
  EXPECT_LE((AsEigen(v_c) - AsEigen(errors) - block.J * block.v).norm(), kTolerance * n);

  Vector sizes = errors;
  AddAbsoluteJv(block.J.data(), n, block.columns(), block.v.data(), &sizes);
  EXPECT_LE((AsEigen(sizes) - AsEigen(errors) - block.J.cwiseAbs() * block.v.cwiseAbs()).norm(),
            kTolerance * n);

  Eigen::VectorXd f = block.f;
  AddJtGamma(block.J.data(), n, block.columns(), gamma, f.data());
  EXPECT_LE((f - block.f - block.J.transpose() * AsEigen(gamma)).norm(), kTolerance * n);

  Eigen::VectorXd bounds = block.f;
  AddAbsoluteJtGamma(block.J.data(), n, block.columns(), errors, 0.5, gamma, bounds.data());
  const Eigen::VectorXd of_rows = AsEigen(errors) + 0.5 * AsEigen(gamma).cwiseAbs();
  EXPECT_LE((bounds - block.f - block.J.cwiseAbs().transpose() * of_rows).norm(), kTolerance * n);

  LawMatrix<rows> G;
  RowMajor dense(rows, rows);
  for (int r = 0; r < rows; ++r) {
    for (int s = 0; s <= r; ++s) {
      dense(r, s) = dense(s, r) = G(r, s) = G(s, r) = Uniform(random, -1, 1);
    }
  }
  RowMajor H = RowMajor::Constant(n, n, 0.25);
  AddJtGJ(block.J.data(), n, block.columns(), G, H.data());
  const RowMajor product = block.J.transpose() * dense * block.J;
  EXPECT_LE((H - RowMajor::Constant(n, n, 0.25) - product).norm(), kTolerance * n);
}

TEST(JacobianKernelsTest, ColumnsOfZerosAreLeftOutOfProductsWithoutAChange) {
  Random random(5);
  for (int n = 17; n < 80; ++n) {
    CheckKernels<ContactVector<double>, 3>(n, &random);
    CheckKernels<LawVector<3>, 3>(n, &random);
    CheckKernels<LawVector<4>, 4>(n, &random);
    CheckKernels<LawVector<6>, 6>(n, &random);
  }
}

TEST(JacobianKernelsTest, FoursAreListedWhereAColumnMoves) {
  std::vector<double> J(2 * 19);
  std::vector<int> list(19);
  J[5] = 1;        // row 0, column 5
  J[19 + 18] = 1;  // row 1, column 18
  ColumnFours::Find(J.data(), 2, 19, list.data());
  EXPECT_EQ(list[0], 2);
  EXPECT_EQ(list[1], 4);
  EXPECT_EQ(list[2], 16);
  std::vector<int> starts;
  ColumnFours(list.data()).ForEach(19, [&](int first, auto&&) { starts.push_back(first); });
  EXPECT_EQ(starts, (std::vector<int>{4, 15}));
}

}  // namespace
}  // namespace sap::test
