// Branched mechanisms by what their degrees of freedom hang on, and matrices with their zeros.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

namespace sap {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A mechanism numbered from its root on: what each degree of freedom hangs on, -1 for the root.
using Parents = std::vector<int>;

inline bool HangsOn(const Parents& parent, int dof, int other) {
  while (dof > other) dof = parent[dof];
  return dof == other;
}

// Mass matrix with the sparsity of a mechanism: sum of J'J over its bodies.
inline RowMajor MassMatrix(const Parents& parent) {
  const int n = static_cast<int>(parent.size());
  RowMajor A = RowMajor::Zero(n, n);
  for (int body = 0; body < n; ++body) {
    for (int axis = 0; axis < 3; ++axis) {
      Eigen::VectorXd J = Eigen::VectorXd::Zero(n);
      for (int dof = body; dof >= 0; dof = parent[dof]) J[dof] = std::cos(7 * body + dof + axis);
      A += J * J.transpose();
    }
    A(body, body) += 1;
  }
  return A;
}

// One past the last degree of freedom that hangs on each.
inline std::vector<int> EndsOfBranches(const Parents& parent) {
  std::vector<int> ends(parent.size());
  for (int i = static_cast<int>(parent.size()) - 1; i >= 0; --i) {
    ends[i] = std::max(ends[i], i + 1);
    if (parent[i] >= 0) ends[parent[i]] = std::max(ends[parent[i]], ends[i]);
  }
  return ends;
}

// A trunk of six dofs with limbs of the given sizes on its last three dofs, in depth-first order.
inline Parents Limbed(const std::vector<int>& limbs) {
  Parents parent{-1, 0, 1, 2, 3, 4};
  for (size_t limb = 0; limb < limbs.size(); ++limb) {
    for (int i = 0; i < limbs[limb]; ++i) {
      parent.push_back(i == 0 ? 5 - static_cast<int>(3 * limb / limbs.size())
                              : static_cast<int>(parent.size()) - 1);
    }
  }
  return parent;
}

}  // namespace sap
