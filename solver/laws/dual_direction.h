// Dual directions of friction: a vector s, |s| <= 1, in place of the slip direction t in G.
//
// With friction along t = u / |u| and of size m, the curvature of m |u| is
//
//   (m / |u|) (1 - (s t' + t s') / 2),   s = t for the derivative of the impulse itself
//
// positive semidefinite for every |s| <= 1 as |t| <= 1. After a full Newton step that changes u by
// du, s solves |u| s = u linearized in u and s together:
//
//   s + ds = t + (du - s t'du) / |u|
//
// then brought back to the unit ball.
#pragma once

#include <cmath>

#include "solver/laws/law_types.h"

namespace sap {

template <size_t n>
inline double Dot(const std::array<double, n>& a, const std::array<double, n>& b) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// 1 - (s t' + t s') / 2, entry (i, j).
template <size_t n>
inline double DualCurvature(const std::array<double, n>& s, const std::array<double, n>& t, int i,
                            int j) {
  return (i == j ? 1.0 : 0.0) - 0.5 * (s[i] * t[j] + s[j] * t[i]);
}

template <size_t n>
inline void BringIntoUnitBall(std::array<double, n>* s) {
  const double norm2 = Dot(*s, *s);
  if (!(norm2 > 1)) return;
  const double scale = 1 / std::sqrt(norm2);
  for (double& component : *s) component *= scale;
}

// s after a full step du; 0 where u has no direction.
template <size_t n>
inline void StepDualDirection(const std::array<double, n>& t, double u_norm,
                              const std::array<double, n>& du, std::array<double, n>* s) {
  if (!(u_norm > kLeastSize)) {
    *s = {};
    return;
  }
  const double t_du = Dot(t, du);
  for (size_t i = 0; i < n; ++i) (*s)[i] = t[i] + (du[i] - (*s)[i] * t_du) / u_norm;
  BringIntoUnitBall(s);
}

}  // namespace sap
