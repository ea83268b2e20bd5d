#pragma once

#include <Eigen/Core>
#include <cmath>

namespace sap {

// Diagonally dominant, with signs and sizes that vary.
inline Eigen::MatrixXd PositiveDefinite(int n) {
  Eigen::MatrixXd A(n, n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      A(i, j) = A(j, i) = std::cos(3.0 * i + j) / (1 + (i - j) * (i - j));
    }
    A(i, i) = 3 + 0.01 * i;
  }
  return A;
}

}  // namespace sap
