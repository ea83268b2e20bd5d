// A problem with every kind of constraint in 80-bit arithmetic, independent of the solver: the
// oracle for its answers. Of friction contacts alone PrimalProblem is one.
//
//   l(v) = 1/2 |v - v*|_A^2 + sum_i f_i(v_c,i),   v_c = J v + b
//
// Constraint space is stacked: six components (t1, t2, n, angular about each) of every contact and
// body contact, zero where it has no angular Jacobian; then one of every row.
#pragma once

#include <Eigen/SparseCholesky>
#include <memory>
#include <vector>

#include "tests/support/exact_laws.h"

namespace sap::test {

class ConstrainedProblem {
 public:
  explicit ConstrainedProblem(const ProblemArrays& arrays);

  int num_velocities() const { return starts_.back(); }
  int num_contacts() const { return static_cast<int>(contacts_.size()); }
  int num_rows() const { return static_cast<int>(rows_.size()); }
  const VectorL& v_star() const { return v_star_; }
  const std::vector<ExactContact>& contacts() const { return contacts_; }
  const std::vector<ExactRow>& rows() const { return rows_; }

  long double Cost(const VectorL& v) const;
  // The sum of the magnitudes of the terms of the cost, which may itself vanish.
  long double CostMagnitude(const VectorL& v) const;
  // |v - v*|' |A| |v - v*|, which rounding errors of the cost are relative to as well: the terms of
  // the product with A cancel where a stiff body is in rigid motion.
  long double QuadraticMagnitude(const VectorL& v) const;
  VectorL Gradient(const VectorL& v) const;
  VectorL ConstraintVelocity(const VectorL& v) const;  // v_c, stacked
  VectorL Impulse(const VectorL& v) const;             // stacked
  // |J| |v| + |b|, which rounding errors of v_c are relative to; stacked.
  VectorL VelocityMagnitude(const VectorL& v) const;
  // Impulses as in an answer: of contacts, with angular Jacobians, of rows.
  VectorL Stacked(const std::vector<double>& impulse, const std::vector<double>& angular_impulse,
                  const std::vector<double>& row_impulse) const;

  VectorL TimesA(const VectorL& v) const;
  VectorL TimesJt(const VectorL& impulse) const;
  long double NormA(const VectorL& v) const;
  // |diag(A)^-1/2 p|, the norm of the stopping test.
  long double ScaledNorm(const VectorL& p) const;
  VectorL DiagonalOfA() const;

 private:
  struct Block {
    int row;  // of constraint space
    int tree;
    MatrixL J;
  };

  // A(a, b), and A(b, a) its transpose.
  struct Coupling {
    int a, b;
    MatrixL block;
  };
  using SparseFactor = Eigen::SimplicialLDLT<Eigen::SparseMatrix<long double>>;

  void ReadTrees(const ProblemArrays& arrays);
  void ReadCouplings(const ProblemArrays& arrays);
  // W of the first rows of the blocks from this one on, which are those of one constraint.
  MatrixL Delassus(size_t first_block, int rows) const;
  long double DelassusOfContact(size_t first_block, const Vector6L& mu) const;
  void ReadContacts(const ProblemArrays& arrays);
  void ReadBodyContacts(const ProblemArrays& arrays);
  // Contact i of the law's arrays, its Jacobians already in blocks_ from the given one on; frame
  // turns vectors of the law's axes into those of the contact.
  void ReadLaw(const ProblemArrays& arrays, const LawArrays& law, size_t i, size_t first_block,
               const Eigen::Matrix3d& frame, size_t* num_angular);
  void ReadRows(const ProblemArrays& arrays);
  void AddBlock(int row, int tree, const MatrixL& J) { blocks_.push_back({row, tree, J}); }
  // The costs of every constraint.
  std::vector<long double> Costs(const VectorL& v) const;

  int dimension() const { return 6 * num_contacts() + num_rows(); }

  std::vector<int> starts_{0};
  std::vector<MatrixL> A_;
  std::vector<Coupling> couplings_;
  // Inverses of the trees' blocks of A where none is coupled, or of its diagonal, by the rule.
  std::vector<MatrixL> delassus_inverse_;
  std::shared_ptr<const SparseFactor> factor_;  // of A where trees are coupled
  VectorL v_star_;
  std::vector<Block> blocks_;
  std::vector<ExactContact> contacts_;
  std::vector<int> angular_contacts_;  // those with angular Jacobians
  std::vector<ExactRow> rows_;
  std::vector<long double> offsets_;  // b, stacked
};

}  // namespace sap::test
