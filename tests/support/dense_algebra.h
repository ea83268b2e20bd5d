// Decompositions of dense matrices. Functions rather than Eigen's templates, whose instantiation
// takes up to half of the time of compiling a test.
#pragma once

#include <Eigen/Core>

namespace sap::test {

using VectorL = Eigen::Matrix<long double, Eigen::Dynamic, 1>;
using MatrixL = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

// In ascending order. The matrix is symmetric.
Eigen::VectorXd EigenvaluesOf(const Eigen::MatrixXd& symmetric);
// The eigenvector of the smallest eigenvalue of a symmetric matrix, of length 1.
Eigen::VectorXd SoftestDirectionOf(const Eigen::MatrixXd& symmetric);

MatrixL InverseOf(const MatrixL& matrix);
// The x of A x = b for a symmetric A that is not singular, by its factors L D L'.
VectorL SolutionOf(const MatrixL& A, const VectorL& b);

}  // namespace sap::test
