#include "client/mujoco/effective_metric.h"

#include <Eigen/Dense>
#include <algorithm>

#include "client/c/tree_factorization.h"

namespace sap::mujoco {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using Matrix6d = Eigen::Matrix<double, 6, 6, Eigen::RowMajor>;
using Vector6d = Eigen::Matrix<double, 6, 1>;

double SmoothForce(const Fields& fields, int64_t dof) {
  double force = fields.qfrc_smooth[dof];
  for (const double* shift : {fields.efm_c, fields.efm_ca}) {
    if (shift != nullptr) force += shift[dof];
  }
  return force;
}

Matrix3d CrossMatrix(const Vector3d& x) {
  return Matrix3d{{0, -x[2], x[1]}, {x[2], 0, -x[0]}, {-x[1], x[0], 0}};
}

class EffectiveMetric {
 public:
  EffectiveMetric(const Fields& fields, const Trees& trees, const double* v_0, const double* blocks,
                  MatrixBlocks* matrix, RowWriter* rows)
      : fields_(fields),
        trees_(trees),
        v_0_(v_0),
        blocks_(blocks),
        matrix_(matrix),
        rows_(rows),
        lacks_rows_(static_cast<size_t>(trees.count())) {}

  void AddDiagonal() {
    for (int64_t dof = 0; dof < fields_.nv; ++dof) matrix_->Add(dof, dof, fields_.efm_diag[dof]);
  }

  void AddFluid() {
    for (int64_t row = 0; row < fields_.nv; ++row) {
      const int64_t begin = fields_.M_rowadr[row];
      for (int64_t k = begin; k < begin + fields_.M_rownnz[row]; ++k) {
        const int64_t column = fields_.M_colind[k];
        matrix_->Add(row, column, fields_.efm_fluid[k]);
        if (row != column) matrix_->Add(column, row, fields_.efm_fluid[k]);
      }
    }
  }

  void AddTerm(const MomentArms& m, double scale) {
    if (m.dofs.empty() || scale == 0.0) return;
    if (!matrix_->couples() && !trees_.InOneTree(m.dofs)) return AddRow(m, scale);
    for (size_t i = 0; i < m.dofs.size(); ++i) {
      for (size_t j = 0; j < m.dofs.size(); ++j) {
        matrix_->Add(m.dofs[i], m.dofs[j], scale * m.values[i] * m.values[j]);
      }
    }
  }

  // Computes v* of trees to whose A a row adds; other trees keep MuJoCo's v*.
  void MoveFreely(double* v_star) {
    for (int64_t tree = 0; tree < trees_.count(); ++tree) {
      if (!lacks_rows_[static_cast<size_t>(tree)]) continue;
      const auto n = static_cast<size_t>(trees_.Size(tree));
      const double* block = blocks_ + trees_.BlockStart(tree);
      factors_.assign(block, block + n * n);
      change_.resize(n);
      const int64_t first = trees_.FirstDof(tree);
      for (size_t i = 0; i < n; ++i)
        change_[i] = fields_.timestep * SmoothForce(fields_, first + static_cast<int64_t>(i));
      SolveInPlace(factors_, change_);
      for (size_t i = 0; i < n; ++i) {
        const int64_t dof = first + static_cast<int64_t>(i);
        v_star[dof] = v_0_ != nullptr ? v_0_[dof] + change_[i] : change_[i];
      }
    }
  }

 private:
  void AddRow(const MomentArms& m, double scale) {
    for (size_t k = 0; k < m.dofs.size(); ++k) {
      rows_->Add(m.dofs[k], m.values[k]);
      lacks_rows_[static_cast<size_t>(trees_.OfDof(m.dofs[k]))] = true;
    }
    const double speed = v_0_ != nullptr ? m.Times(v_0_) : 0.0;
    rows_->Finish({.regularization = 1.0 / scale, .target_velocity = speed});
  }

  const Fields& fields_;
  const Trees& trees_;
  const double* v_0_;
  const double* blocks_;
  MatrixBlocks* matrix_;
  RowWriter* rows_;
  std::vector<bool> lacks_rows_;  // trees
  std::vector<double> factors_;   // of one tree
  std::vector<double> change_;
};

// Acceleration of a body that is a tree of its own, with the block A_t.
Vector6d GyroscopicAcceleration(const Fields& fields, int64_t first, const double* block) {
  const int32_t joint = fields.dof_jntid[first];
  // M of a free joint: velocity of its origin in the world, angular velocity w in the body.
  //   m 1        -m R [c]
  //              I_o + armature
  // and the bias of these is (m R w x (w x c), w x I_o w).
  Matrix6d M = Matrix6d::Zero();
  for (int64_t row = 0; row < 6; ++row) {
    const int64_t begin = fields.M_rowadr[first + row];
    for (int64_t k = begin; k < begin + fields.M_rownnz[first + row]; ++k) {
      const int64_t column = fields.M_colind[k] - first;
      M(row, column) = M(column, row) = fields.M[k];
    }
  }
  const Vector3d w(fields.qvel + first + 3);
  const double* q = fields.qpos + fields.jnt_qposadr[joint] + 3;
  const Matrix3d R = Eigen::Quaterniond(q[0], q[1], q[2], q[3]).normalized().toRotationMatrix();
  const Matrix3d I = M.bottomRightCorner<3, 3>() -
                     Matrix3d(Vector3d(fields.dof_armature + first + 3).asDiagonal());
  const Matrix3d mc = -R.transpose() * M.topRightCorner<3, 3>();  // m [c]
  Matrix6d A = Eigen::Map<const Matrix6d>(block);
  const double h = fields.timestep;
  const Vector3d u = -mc * w;  // m w x c
  A.topRightCorner<3, 3>() -= h * R * (CrossMatrix(u) + CrossMatrix(w) * mc);
  A.bottomRightCorner<3, 3>() += h * (CrossMatrix(w) * I - CrossMatrix(I * w));
  Vector6d tau;
  for (int64_t i = 0; i < 6; ++i) tau[i] = SmoothForce(fields, first + i);
  return A.partialPivLu().solve(tau);
}

}  // namespace

void WriteEffectiveMetric(const Fields& fields, const Trees& trees, const double* v_0,
                          const double* blocks, MatrixBlocks* matrix, double* v_star,
                          RowWriter* rows) {
  EffectiveMetric metric(fields, trees, v_0, blocks, matrix, rows);
  if (fields.efm_diag != nullptr) metric.AddDiagonal();
  if (fields.efm_fluid != nullptr) metric.AddFluid();
  if (fields.nefmK > 0) matrix->AddStiffness(fields);
  for (const MetricTerm& term : MetricTermsOf(fields)) metric.AddTerm(term.arms, term.scale);
  metric.MoveFreely(v_star);
}

void MultiplyMetric(const Fields& fields, const double* x, double* product) {
  for (int64_t row = 0; row < fields.nv; ++row) {
    product[row] = fields.efm_diag != nullptr ? fields.efm_diag[row] * x[row] : 0.0;
  }
  for (int64_t row = 0; fields.efm_fluid != nullptr && row < fields.nv; ++row) {
    const int64_t begin = fields.M_rowadr[row];
    for (int64_t k = begin; k < begin + fields.M_rownnz[row]; ++k) {
      const int64_t column = fields.M_colind[k];
      product[row] += fields.efm_fluid[k] * x[column];
      if (row != column) product[column] += fields.efm_fluid[k] * x[row];
    }
  }
  for (int64_t row = 0; fields.nefmK > 0 && row < fields.nv; ++row) {
    const int64_t begin = fields.efm_K_rowadr[row];
    for (int64_t k = begin; k < begin + fields.efm_K_rownnz[row]; ++k) {
      product[row] += fields.efm_K_val[k] * x[fields.efm_K_colind[k]];
    }
  }
  for (const auto& [arms, scale] : MetricTermsOf(fields)) {
    const double along = scale * arms.Times(x);
    for (size_t k = 0; k < arms.dofs.size(); ++k) product[arms.dofs[k]] += along * arms.values[k];
  }
}

void WriteGyroscopicSteps(const Fields& fields, const Trees& trees,
                          const std::vector<bool>& is_constrained, const double* v_0,
                          const double* blocks, double* v_star) {
  for (int64_t tree = 0; tree < trees.count(); ++tree) {
    const int64_t first = trees.FirstDof(tree);
    const int32_t whole = fields.dof_treeid[first];
    const bool is_single =
        fields.jnt_type[fields.dof_jntid[first]] == mjJNT_FREE && fields.tree_bodynum[whole] == 1;
    const bool is_asleep = fields.tree_asleep[whole] >= 0;
    if (!is_single || is_asleep || is_constrained[static_cast<size_t>(tree)]) continue;
    const Vector6d a = GyroscopicAcceleration(fields, first, blocks + trees.BlockStart(tree));
    for (int64_t i = 0; i < 6; ++i) {
      v_star[first + i] = fields.timestep * a[i] + (v_0 != nullptr ? v_0[first + i] : 0.0);
    }
  }
}

}  // namespace sap::mujoco
