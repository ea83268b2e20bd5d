// Every kind of constraint after the formulas of proto/sap/v1/problem.proto, dense and in 80-bit
// arithmetic: the oracle for what the solver computes of constraints.
//
// The impulse of a contact or row with a set C of admissible impulses is that of the conjugate
//
//   f(v_c) = max_{g in C} g'(v_hat - v_c) - 1/2 g' R g,   gamma = the g that attains it
//
// for a cone found by bisection on its normal component, which knows of no regions. Contacts have
// six rows, (t1, t2, n) linear and angular; an axis without friction has the coefficient 0.
#pragma once

#include <vector>

#include "tests/support/primal_problem.h"

namespace sap::test {

struct DenseContact {
  ContactLaw law;
  MatrixL J;                            // 6 x velocities
  VectorL b, v_hat;                     // [6]
  VectorL mu;                           // [6], 1 in the row of the normal
  long double w, R_t, R_n;              // R_j = R_t mu_1^2 / mu_j^2 on the axis j
  long double c;                        // impulse of adhesion
  long double f_e, k, d, n_0, eps, dt;  // of a law of Hunt & Crossley

  VectorL Impulse(const VectorL& v_c) const;  // [6]
  long double Cost(const VectorL& v_c) const;
};

struct DenseRow {
  MatrixL J;                       // 1 x velocities
  long double b, v_hat;            // v_hat with what the feed-forward adds
  long double w, R, lower, upper;  // impulses

  long double Impulse(long double v_c) const;
  long double Cost(long double v_c) const;
};

// A problem of trees, contacts by Jacobian and rows.
class DenseProblem {
 public:
  explicit DenseProblem(const ProblemArrays& arrays);

  const MatrixL& A() const { return A_; }
  const VectorL& v_star() const { return v_star_; }
  const std::vector<DenseContact>& contacts() const { return contacts_; }
  const std::vector<DenseRow>& rows() const { return rows_; }

  long double Cost(const VectorL& v) const;
  // The sum of the sizes of its terms.
  long double CostSize(const VectorL& v) const;
  VectorL Gradient(const VectorL& v) const;
  // By central differences of the gradient.
  MatrixL Hessian(const VectorL& v) const;
  // Restricted to these velocities.
  MatrixL Hessian(const VectorL& v, const std::vector<int>& velocities) const;

 private:
  void ReadContacts(const ProblemArrays& arrays, const MatrixL& mobility);
  void ReadRows(const ProblemArrays& arrays, const MatrixL& mobility);

  MatrixL A_;
  VectorL v_star_;
  std::vector<DenseContact> contacts_;
  std::vector<DenseRow> rows_;
};

}  // namespace sap::test
