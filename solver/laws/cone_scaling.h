// Nesterov-Todd scaling of two points inside the cone K = { x_0 >= |x_1| }, in closed form.
//
//   W z = W^-1 u = lambda,   W = eta (E p+ p+' + E^-1 p- p-' + the rest),   p+- = (1, +-n) / sqrt 2
//
// with |n| = 1, E >= 1, det x = x_0^2 - |x_1|^2, zb = z / sqrt(det z), ub likewise:
//
//   g^2 = (1 + z'u / sqrt(det z det u)) / 2,   w_1 = (ub_1 - zb_1) / (2 g),   n = w_1 / |w_1|
//   E = |w_1| + sqrt(1 + |w_1|^2),   eta = (det u / det z)^(1/4)
//   lambda_1 = (det z det u)^(1/4) ((g + zb_0) ub_1 + (g + ub_0) zb_1) / (zb_0 + ub_0 + 2 g)
//
// A sliding contact has z and u next to the surface of K, where x_0^2 - |x_1|^2 is lost in rounding
// errors long before z'u is small. So det z, det u and z'u are carried along: after a step they are
// computed of the scaled points, which are near the axis.
//
// Vectors have the normal first; k is 3, 4 or 6, the same formulas for all.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "solver/laws/law_types.h"

namespace sap {

// (x_0, x_1).
template <int k>
using ConeVector = std::array<double, k>;

template <size_t k>
inline double TailDot(const std::array<double, k>& x, const std::array<double, k>& y) {
  double sum = 0;
  for (size_t i = 1; i < k; ++i) sum += x[i] * y[i];
  return sum;
}
template <size_t k>
inline double TailNorm(const std::array<double, k>& x) {
  return std::sqrt(TailDot(x, x));
}
template <size_t k>
inline double FullDot(const std::array<double, k>& x, const std::array<double, k>& y) {
  return x[0] * y[0] + TailDot(x, y);
}
template <size_t k>
inline double ConeDeterminant(const std::array<double, k>& x) {
  const double tail = TailNorm(x);
  return (x[0] - tail) * (x[0] + tail);
}

// x + factor y.
template <size_t k>
inline std::array<double, k> PlusScaled(std::array<double, k> x, double factor,
                                        const std::array<double, k>& y) {
  for (size_t i = 0; i < k; ++i) x[i] += factor * y[i];
  return x;
}

// The product x o y = (x'y, x_0 y_1 + y_0 x_1), of which e = (1, 0) is the identity.
template <size_t k>
inline std::array<double, k> ConeProduct(const std::array<double, k>& x,
                                         const std::array<double, k>& y) {
  std::array<double, k> product;
  product[0] = FullDot(x, y);
  for (size_t i = 1; i < k; ++i) product[i] = x[0] * y[i] + y[0] * x[i];
  return product;
}

// The x with l o x = d, for l inside K.
template <size_t k>
inline std::array<double, k> ConeQuotient(const std::array<double, k>& d,
                                          const std::array<double, k>& l) {
  std::array<double, k> x;
  x[0] = (l[0] * d[0] - TailDot(l, d)) / ConeDeterminant(l);
  for (size_t i = 1; i < k; ++i) x[i] = (d[i] - x[0] * l[i]) / l[0];
  return x;
}

// The largest a for which x + a dx is in K, for x inside K; infinite where the ray stays in it.
template <size_t k>
inline double LargestStepInCone(const std::array<double, k>& x, const std::array<double, k>& dx) {
  const double a = dx[0] * dx[0] - TailDot(dx, dx);
  const double b = x[0] * dx[0] - TailDot(x, dx);
  const double c = std::max(ConeDeterminant(x), 0.0);
  // Rounding errors can make it negative where the ray is next to touching the surface.
  const double root = std::sqrt(std::max(b * b - a * c, 0.0));
  double step = std::numeric_limits<double>::infinity();
  if (b < 0) {
    step = c / (root - b);
  } else if (a < 0) {
    step = (b + root) / -a;
  }
  return dx[0] < 0 ? std::min(step, -x[0] / dx[0]) : step;
}

// Two points inside K, with det z, det u and z'u.
template <int k>
struct ConePair {
  ConeVector<k> z, u;
  double det_z, det_u, product;

  static ConePair Make(const ConeVector<k>& z, const ConeVector<k>& u) {
    return {z, u, ConeDeterminant(z), ConeDeterminant(u), FullDot(z, u)};
  }
};

template <int k>
class ConeScaling {
 public:
  using Vector = ConeVector<k>;

  ConeScaling() = default;
  explicit ConeScaling(const ConePair<k>& pair) {
    const double root_z = std::sqrt(std::max(pair.det_z, kLeastDeterminant));
    const double root_u = std::sqrt(std::max(pair.det_u, kLeastDeterminant));
    const double roots = root_z * root_u;
    Vector z = pair.z, u = pair.u;
    for (int i = 1; i < k; ++i) {
      z[i] /= root_z;
      u[i] /= root_u;
    }
    z[0] = std::sqrt(1 + TailDot(z, z));
    u[0] = std::sqrt(1 + TailDot(u, u));
    const double g = std::sqrt((1 + pair.product / roots) / 2);
    for (int i = 1; i < k; ++i) axis_[i - 1] = (u[i] - z[i]) / (2 * g);
    double size = 0;
    for (const double component : axis_) size += component * component;
    size = std::sqrt(size);
    if (size > 0) {
      for (double& component : axis_) component /= size;
    } else {
      axis_ = {1.0};
    }
    stretch_ = std::sqrt(1 + size * size) + size;
    size_ = std::sqrt(root_u / root_z);
    const double scale = std::sqrt(roots) / (z[0] + u[0] + 2 * g);
    for (int i = 1; i < k; ++i) lambda_[i] = scale * ((g + z[0]) * u[i] + (g + u[0]) * z[i]);
    lambda_[0] = std::sqrt(roots + TailDot(lambda_, lambda_));
  }

  const Vector& lambda() const { return lambda_; }
  double eta() const { return size_; }
  double E() const { return stretch_; }
  const std::array<double, k - 1>& n() const { return axis_; }

  // W x and W^-1 x.
  Vector Scale(const Vector& x) const { return Stretch(x, size_, stretch_); }
  Vector Unscale(const Vector& x) const { return Stretch(x, 1 / size_, 1 / stretch_); }

  // The pair after a step t of z and u, of which W dz and W^-1 du are known too.
  ConePair<k> After(const ConePair<k>& pair, double t, const Vector& dz, const Vector& du,
                    const Vector& scaled_dz, const Vector& scaled_du) const {
    const Vector z = PlusScaled(lambda_, t, scaled_dz);
    const Vector u = PlusScaled(lambda_, t, scaled_du);
    const double eta2 = size_ * size_;
    return {PlusScaled(pair.z, t, dz), PlusScaled(pair.u, t, du),
            std::max(ConeDeterminant(z), kLeastDeterminant) / eta2,
            std::max(ConeDeterminant(u), kLeastDeterminant) * eta2, FullDot(z, u)};
  }

 private:
  static constexpr double kLeastDeterminant = 1e-300;

  Vector Stretch(const Vector& x, double size, double stretch) const {
    double along = 0;
    for (int i = 1; i < k; ++i) along += x[i] * axis_[i - 1];
    const double plus = 0.5 * size * stretch * (x[0] + along);
    const double minus = 0.5 * size / stretch * (x[0] - along);
    Vector y;
    y[0] = plus + minus;
    for (int i = 1; i < k; ++i) {
      y[i] = (plus - minus) * axis_[i - 1] + size * (x[i] - along * axis_[i - 1]);
    }
    return y;
  }

  std::array<double, k - 1> axis_;  // n
  double stretch_, size_;           // E, eta
  Vector lambda_;
};

// M = (diag(R_n, rho, .., rho) + W^2)^-1. No term of it is a difference of numbers that can be
// close to each other, so neither large E nor R near 0 cost it accuracy.
template <int k>
class ConeBlock {
 public:
  using Vector = ConeVector<k>;

  ConeBlock() = default;
  ConeBlock(const ConeScaling<k>& scaling, double R_n, double rho) : n_(scaling.n()) {
    const double eta2 = scaling.eta() * scaling.eta();
    const double E2 = scaling.E() * scaling.E();
    const double mean = 0.5 * eta2 * (E2 + 1 / E2);
    const double inv_det = 1 / (eta2 * eta2 + mean * (R_n + rho) + R_n * rho);
    normal_ = (mean + rho) * inv_det;
    along_ = (mean + R_n) * inv_det;
    mixed_ = -0.5 * eta2 * (E2 - 1 / E2) * inv_det;
    across_ = 1 / (rho + eta2);
    // On p+ and p-, where a product with M loses nothing.
    plus_ = (eta2 / E2 + 0.5 * (R_n + rho)) * inv_det;
    minus_ = (eta2 * E2 + 0.5 * (R_n + rho)) * inv_det;
    between_ = -0.5 * (R_n - rho) * inv_det;
  }

  Vector operator*(const Vector& x) const {
    double a = 0;
    for (int i = 1; i < k; ++i) a += x[i] * n_[i - 1];
    const double p = 0.5 * (x[0] + a), m = 0.5 * (x[0] - a);
    const double plus = plus_ * p + between_ * m, minus = minus_ * m + between_ * p;
    Vector y;
    y[0] = plus + minus;
    for (int i = 1; i < k; ++i) {
      y[i] = (plus - minus) * n_[i - 1] + across_ * (x[i] - a * n_[i - 1]);
    }
    return y;
  }

  Vector FirstColumn() const {
    Vector column;
    for (int i = 0; i < k; ++i) column[i] = (*this)(i, 0);
    return column;
  }
  // Entry (i, j) of M.
  double operator()(int i, int j) const {
    if (i == 0 && j == 0) return normal_;
    if (i == 0) return mixed_ * n_[j - 1];
    if (j == 0) return mixed_ * n_[i - 1];
    const double product = n_[i - 1] * n_[j - 1];
    return along_ * product + across_ * ((i == j ? 1 : 0) - product);
  }

 private:
  std::array<double, k - 1> n_;
  double normal_, along_, mixed_, across_;
  double plus_, minus_, between_;
};

}  // namespace sap
