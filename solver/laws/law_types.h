// Types that all laws share: vectors and matrices of one constraint with n rows, n from 1 to 6; the
// derivatives that a law has; and the sums over constraints that laws add to.
#pragma once

#include <array>
#include <cmath>
#include <limits>

namespace sap {

// Slips and impulses below this have no direction, which counts as 0: squares of smaller numbers
// leave the normal doubles, and inverses of subnormal ones are infinite.
inline constexpr double kLeastSize = 1e-150;

template <int n>
using LawVector = std::array<double, n>;

// Symmetric, row-major, both triangles.
template <int n>
struct LawMatrix {
  std::array<double, n * n> entries{};

  double& operator()(int i, int j) { return entries[i * n + j]; }
  double operator()(int i, int j) const { return entries[i * n + j]; }
  bool IsZero() const {
    for (const double entry : entries) {
      if (entry != 0) return false;
    }
    return true;
  }
};

// A vector or matrix of one constraint in the form of laws, out of the arrays of any pool.
template <size_t n>
inline const std::array<double, n>& ToLawVector(const std::array<double, n>& vector) {
  return vector;
}
template <size_t n>
inline void FromLawVector(const std::array<double, n>& vector, std::array<double, n>* to) {
  *to = vector;
}
template <int n>
inline const LawMatrix<n>& ToLawMatrix(const LawMatrix<n>& matrix) {
  return matrix;
}

// Derivatives of a law at fixed v_c with respect to its parameters theta. Those with respect to
// v_hat are G and gamma.
template <int num_rows, int num_parameters>
struct LawSensitivity {
  static constexpr int kParameters = num_parameters;
  std::array<LawVector<num_rows>, num_parameters> impulse{};  // d gamma / d theta_k
  std::array<double, num_parameters> cost{};                  // d f / d theta_k
};

// A sum of costs [J].
struct CostSum {
  double value{0};
  double magnitude{0};  // the sum of the sizes of its terms, which can have either sign

  CostSum& operator+=(const CostSum& part) {
    value += part.value;
    magnitude += part.magnitude;
    return *this;
  }
};

// First and second derivative of a cost along a line.
struct LineSlope {
  double first{0};
  double second{0};

  LineSlope& operator+=(const LineSlope& part) {
    first += part.first;
    second += part.second;
    return *this;
  }
};

// Sizes by which the distance of a law from its kinks is measured.
struct KinkScales {
  double normal_speeds;      // |v_hat_n| + |v_n| of a contact, surface velocity included [m/s]
  double regularization{1};  // distance of R from its other branch, in [0, 1]
};

// |a - b| / (|a| + |b|), in [0, 1]; 1 where one of them is infinite.
inline double RelativeDistance(double a, double b) {
  const double size = std::abs(a) + std::abs(b);
  if (!std::isfinite(size)) return 1;
  return size > 0 ? std::abs(a - b) / size : 0.0;
}

}  // namespace sap
