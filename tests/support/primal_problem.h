// An implementation of the contact problem that is independent of the solver, in 80-bit arithmetic:
// the oracle for the solver's answers.
//
//   l(v)    = 1/2 |v - v*|_A^2 + sum_i 1/2 gamma_i' R_i gamma_i
//   gamma_i = P_F(-R_i^-1 (J_i v + b_i - v_hat_i))
//
// Takes problems of trees with contacts by Jacobian; WithBodiesAsTrees converts any problem.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "tests/support/dense_algebra.h"
#include "tests/support/problem_arrays.h"

namespace sap::test {

using Vector3L = Eigen::Matrix<long double, 3, 1>;

// The point of the cone |g_t| <= mu g_n nearest to y in the norm of R = diag(R_t, R_t, R_n). For a
// given g_n the best g_t is y_t brought into the disk of radius mu g_n; what is left is a convex
// function of g_n of two quadratic pieces.
Vector3L NearestInCone(const Vector3L& y, long double R_t, long double R_n, long double mu);

VectorL ToVectorL(const std::vector<double>& values);

class PrimalProblem {
 public:
  explicit PrimalProblem(const ProblemArrays& arrays);

  int num_velocities() const { return starts_.back(); }
  const VectorL& v_star() const { return v_star_; }
  const VectorL& R() const { return R_; }          // [3 C]
  const VectorL& v_hat() const { return v_hat_; }  // [3 C], surface velocity not included
  const VectorL& mu() const { return mu_; }        // [C]

  long double Cost(const VectorL& v) const;
  VectorL Gradient(const VectorL& v) const;
  VectorL ContactVelocity(const VectorL& v) const;  // J v + b [3 C]
  VectorL Impulse(const VectorL& v) const;          // [3 C]

  VectorL TimesA(const VectorL& v) const;
  VectorL TimesInverseA(const VectorL& p) const;
  VectorL TimesJt(const VectorL& impulse) const;
  long double NormA(const VectorL& v) const;
  // |diag(A)^-1/2 p|, the norm of the stopping test.
  long double ScaledNorm(const VectorL& p) const;
  long double TraceA() const;
  std::vector<double> DiagonalOfA() const;

 private:
  struct Block {
    int contact;
    int tree;
    MatrixL J;
  };

  void ReadLaw(const ProblemArrays& arrays);

  std::vector<int> starts_;
  std::vector<MatrixL> A_;
  std::vector<MatrixL> A_inverse_;
  std::vector<Block> blocks_;
  VectorL v_star_, R_, v_hat_, mu_, b_;
};

// The same scene without rigid bodies: each is a tree of six dofs with diag(m 1, I), and column j
// of a contact's Jacobian is how the contact point moves in the frame (t1, t2, n) of the schema
// when velocity j is one.
ProblemArrays WithBodiesAsTrees(const ProblemArrays& arrays);

// The frame (t1, t2, n), as columns, that proto/sap/v1/problem.proto promises for a normal.
Eigen::Matrix3d FrameOfSchema(const Eigen::Vector3d& n);

// How a point at r from the center of mass moves in that frame, by unit velocity j, times sign.
ProblemArrays::Jacobian PointJacobian(const Eigen::Matrix3d& frame, const Eigen::Vector3d& r,
                                      double sign);

}  // namespace sap::test
