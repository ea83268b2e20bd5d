// Springs and dampers whose coefficient is a polynomial of the stretch or of the speed x:
//
//   force = -x p(|x|),   p(x) = c + p_0 x + p_1 x^2
//
// A tendon's spring has p(x) for p(|x|). Where `poly` is null, as in MuJoCo before 3.7, p = c.
#pragma once

#include <cmath>
#include <cstdint>

namespace sap::mujoco {

inline constexpr int64_t kPolynomial = 2;  // coefficients after the linear one

// The coefficients of element i, or null.
inline const double* PolynomialOf(const double* polynomials, int64_t i) {
  return polynomials == nullptr ? nullptr : polynomials + kPolynomial * i;
}

// p(x).
inline double Coefficient(double linear, const double* poly, double x) {
  return poly == nullptr ? linear : linear + x * (poly[0] + x * poly[1]);
}

// d(x p(x))/dx, the slope of the force.
inline double Slope(double linear, const double* poly, double x) {
  return poly == nullptr ? linear : linear + x * (2 * poly[0] + x * 3 * poly[1]);
}

}  // namespace sap::mujoco
