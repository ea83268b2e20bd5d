// Vectors of cones and linear maps of them as dense vectors and matrices.
#pragma once

#include <Eigen/Core>

#include "solver/laws/cone_scaling.h"

namespace sap::test {

template <int k>
using DenseVector = Eigen::Matrix<double, k, 1>;
template <int k>
using DenseMatrix = Eigen::Matrix<double, k, k>;

template <int k>
DenseVector<k> ToDense(const ConeVector<k>& x) {
  return Eigen::Map<const DenseVector<k>>(x.data());
}
template <int k>
ConeVector<k> UnitOfCone(int i) {
  ConeVector<k> x{};
  x[i] = 1;
  return x;
}
// The matrix of a linear map, column by column.
template <int k, typename LinearMap>
DenseMatrix<k> MatrixOf(LinearMap&& map) {
  DenseMatrix<k> matrix;
  for (int i = 0; i < k; ++i) matrix.col(i) = ToDense<k>(map(UnitOfCone<k>(i)));
  return matrix;
}

}  // namespace sap::test
