// Vectors of a constraint in a pool, and of the same constraint in a DenseProblem.
#pragma once

#include "solver/pools/constraint_pools.h"
#include "tests/support/dense_problem.h"

namespace sap::test {

// The row of six for a row of a contact of a pool with num_rows rows.
inline int DenseRowOf(int row, int num_rows) { return num_rows == 4 && row == 3 ? 5 : row; }

inline VectorL ToDense(const ContactVector<double>& vector) {
  VectorL dense = VectorL::Zero(6);
  dense.head(3) << vector.x, vector.y, vector.n;
  return dense;
}
template <size_t rows>
VectorL ToDense(const std::array<double, rows>& vector) {
  VectorL dense = VectorL::Zero(rows == 1 ? 1 : 6);
  for (size_t row = 0; row < rows; ++row) dense[DenseRowOf(row, rows)] = vector[row];
  return dense;
}

inline MatrixL ToDense(const SymmetricMatrix3<double>& G) {
  MatrixL dense = MatrixL::Zero(6, 6);
  dense.topLeftCorner(3, 3) << G.xx, G.xy, G.xn, G.xy, G.yy, G.yn, G.xn, G.yn, G.nn;
  return dense;
}
template <int rows>
MatrixL ToDense(const LawMatrix<rows>& G) {
  MatrixL dense = MatrixL::Zero(rows == 1 ? 1 : 6, rows == 1 ? 1 : 6);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < rows; ++j) dense(DenseRowOf(i, rows), DenseRowOf(j, rows)) = G(i, j);
  }
  return dense;
}

inline void FromDense(const VectorL& dense, ContactVector<double>* vector) {
  *vector = {static_cast<double>(dense[0]), static_cast<double>(dense[1]),
             static_cast<double>(dense[2])};
}
template <size_t rows>
void FromDense(const VectorL& dense, std::array<double, rows>* vector) {
  for (size_t row = 0; row < rows; ++row) {
    (*vector)[row] = static_cast<double>(dense[DenseRowOf(row, rows)]);
  }
}

// A contact or a row of a DenseProblem, alike.
template <int index>
VectorL DenseImpulse(const DenseProblem& dense, PoolIndex<index>, int number, const VectorL& v_c) {
  if constexpr (index < kNumContactKinds) {
    return dense.contacts()[number].Impulse(v_c);
  } else {
    return VectorL::Constant(1, dense.rows()[number].Impulse(v_c[0]));
  }
}
template <int index>
long double DenseCost(const DenseProblem& dense, PoolIndex<index>, int number, const VectorL& v_c) {
  if constexpr (index < kNumContactKinds) {
    return dense.contacts()[number].Cost(v_c);
  } else {
    return dense.rows()[number].Cost(v_c[0]);
  }
}
template <int index>
MatrixL DenseJacobian(const DenseProblem& dense, PoolIndex<index>, int number) {
  if constexpr (index < kNumContactKinds) {
    return dense.contacts()[number].J;
  } else {
    return dense.rows()[number].J;
  }
}
template <int index>
VectorL DenseOffset(const DenseProblem& dense, PoolIndex<index>, int number) {
  if constexpr (index < kNumContactKinds) {
    return dense.contacts()[number].b;
  } else {
    return VectorL::Constant(1, dense.rows()[number].b);
  }
}
template <int index>
VectorL DenseTarget(const DenseProblem& dense, PoolIndex<index>, int number) {
  if constexpr (index < kNumContactKinds) {
    return dense.contacts()[number].v_hat;
  } else {
    return VectorL::Constant(1, dense.rows()[number].v_hat);
  }
}

}  // namespace sap::test
