// The law of general_cone.h in the axes in which its cone is { z_0 >= |z_1| }, the normal first:
//
//   z = (gamma_n + c, gamma_j / mu_j),   e = (v_hat_n - v_n + R_n c, mu_j (v_hat_j - v_j))
//   z = argmin_{x in K} 1/2 x' Rb x - e'x,   Rb = diag(R_n, rho, .., rho)
//
// An axis with mu_j = 0 has e_j = 0 and z_j = 0.
#pragma once

#include "solver/laws/cone_scaling.h"
#include "solver/laws/general_cone.h"

namespace sap {

template <int k>
struct ScaledCone {
  using Vector = ConeVector<k>;
  using Cone = GeneralCone<k>;
  static constexpr int kNormal = Cone::kNormal;

  typename Cone::Parameters p;

  // R of component i.
  double R(int i) const { return i == 0 ? p.R_n : p.rho; }

  Vector e(const LawVector<k>& v_c) const {
    Vector e;
    e[0] = p.v_hat[kNormal] - v_c[kNormal] + p.R_n * p.adhesion_impulse;
    for (int i = 1; i < k; ++i) e[i] = p.mu[RowOf(i)] * (p.v_hat[RowOf(i)] - v_c[RowOf(i)]);
    return e;
  }
  // -de, and bounds on the errors of e from those of v_c.
  Vector Scaled(const LawVector<k>& dv_c) const {
    Vector scaled;
    for (int i = 0; i < k; ++i) scaled[i] = p.mu[RowOf(i)] * dv_c[RowOf(i)];
    return scaled;
  }
  // The impulse without -c.
  LawVector<k> Unscaled(const Vector& z) const {
    LawVector<k> gamma;
    for (int i = 0; i < k; ++i) gamma[RowOf(i)] = p.mu[RowOf(i)] * z[i];
    return gamma;
  }
  LawVector<k> Impulse(const Vector& z) const {
    LawVector<k> gamma = Unscaled(z);
    gamma[kNormal] -= p.adhesion_impulse;
    return gamma;
  }
  // z of an impulse; 0 along an axis with mu_j = 0.
  Vector Dual(const LawVector<k>& gamma) const {
    Vector z;
    z[0] = gamma[kNormal] + p.adhesion_impulse;
    for (int i = 1; i < k; ++i) {
      const double mu = p.mu[RowOf(i)];
      z[i] = mu > 0 ? gamma[RowOf(i)] / mu : 0;
    }
    return z;
  }
  // G of the velocities from -dz/de, which entry(i, j) gives.
  LawMatrix<k> Hessian(auto&& entry) const {
    LawMatrix<k> G;
    for (int i = 0; i < k; ++i) {
      for (int j = 0; j < k; ++j) {
        G(RowOf(i), RowOf(j)) = p.mu[RowOf(i)] * p.mu[RowOf(j)] * entry(i, j);
      }
    }
    return G;
  }

  // z at e, and dz/de = diag(normal, across, ..) + kappa (1, t)(1, t)' - across (0, t)(0, t)', the
  // last two where it slides.
  struct Projection {
    Vector z;
    ConeRegion region;
    double normal{0}, across{0}, kappa{0};
    Vector t{};

    double Slope(int i, int j) const {
      if (region == ConeRegion::kOpen) return 0;
      if (region == ConeRegion::kStick) return i == j ? (i == 0 ? normal : across) : 0;
      const double along = kappa * t[i] * t[j];
      if (i == 0 || j == 0) return along;
      return along + across * ((i == j ? 1 : 0) - t[i] * t[j]);
    }
  };
  Projection Project(const Vector& e) const {
    Projection point;
    const double E = TailNorm(e);
    point.z = {};
    if (e[0] + E <= 0) {
      point.region = ConeRegion::kOpen;
    } else if (p.R_n * E <= p.rho * e[0]) {
      point.region = ConeRegion::kStick;
      point.normal = p.inv_R_n;
      point.across = p.inv_rho;
      point.z[0] = e[0] * p.inv_R_n;
      for (int i = 1; i < k; ++i) point.z[i] = e[i] * p.inv_rho;
    } else {
      point.region = ConeRegion::kSlide;
      point.kappa = p.kappa;
      const double z_0 = p.kappa * (e[0] + E);
      const double inv_E = E > kLeastSize ? 1 / E : 0;
      point.across = z_0 * inv_E;
      point.z[0] = z_0;
      point.t[0] = 1;
      for (int i = 1; i < k; ++i) {
        point.t[i] = e[i] * inv_E;
        point.z[i] = z_0 * point.t[i];
      }
    }
    return point;
  }

  // 1/2 |x - z|^2 in Rb + z'(Rb x - e) with the x of e, for any z of the cone: at least 0, and 0
  // where z is x.
  struct Gap {
    double value;
    double size;        // the sizes of its terms added up, for its rounding errors
    Vector difference;  // x - z, its derivative with respect to e
  };
  Gap GapAt(const Vector& e, const Vector& z) const {
    const Vector x = Project(e).z;
    Gap gap{};
    double quadratic = 0, linear = 0;
    for (int i = 0; i < k; ++i) {
      gap.difference[i] = x[i] - z[i];
      quadratic += 0.5 * R(i) * gap.difference[i] * gap.difference[i];
      linear += z[i] * (R(i) * x[i] - e[i]);
      gap.size += std::abs(z[i]) * (R(i) * std::abs(x[i]) + std::abs(e[i])) +
                  R(i) * (x[i] * x[i] + z[i] * z[i]);
    }
    gap.value = quadratic + std::max(linear, 0.0);
    return gap;
  }

 private:
  // The row of component i.
  static constexpr int RowOf(int i) { return i == 0 ? kNormal : Cone::RowOf(i - 1); }
};

}  // namespace sap
