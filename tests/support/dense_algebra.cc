#include "tests/support/dense_algebra.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

namespace sap::test {

using EigenSolver = Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

Eigen::VectorXd EigenvaluesOf(const Eigen::MatrixXd& symmetric) {
  return EigenSolver(symmetric).eigenvalues();
}

Eigen::VectorXd SoftestDirectionOf(const Eigen::MatrixXd& symmetric) {
  return EigenSolver(symmetric).eigenvectors().col(0);
}

MatrixL InverseOf(const MatrixL& matrix) { return matrix.inverse(); }

VectorL SolutionOf(const MatrixL& A, const VectorL& b) { return A.ldlt().solve(b); }

}  // namespace sap::test
