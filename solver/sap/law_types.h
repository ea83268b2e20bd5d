// Vectors and matrices of the law of one constraint with n rows, n from 1 to 6.
#pragma once

#include <array>

namespace sap {

template <int n>
using LawVector = std::array<double, n>;

// Symmetric, row-major, both triangles.
template <int n>
struct LawMatrix {
  std::array<double, n * n> entries{};

  double& operator()(int i, int j) { return entries[i * n + j]; }
  double operator()(int i, int j) const { return entries[i * n + j]; }
};

}  // namespace sap
