// Exact Coulomb friction (coulomb_cone.h) as a cone whose velocity is shifted along the normal
// [De Saxce, Feng 1998], in the axes of scaled_cone.h:
//
//   u = Rb z + B v - e_0 + |u_t| (1, 0),   u_t = rho s - e_t,   z, u in K,   z o u = 0
//
// Sliding then has R_n z_0 = e_n, without the drift of the convex law. The derivative of u is
// T (Rb dz + B dv) with T = 1 + (1, 0)(0, t)', t = u_t / |u_t|, so that the block of the
// interior-point method is
//
//   (T Rb + W^2)^-1 = M - (M e_1)(t_0' M) rho / (1 + rho t_0' M e_1),   M = (Rb + W^2)^-1,
//
// e_1 = (1, 0), t_0 = (0, t), and not symmetric.
#pragma once

#include "solver/laws/cone_scaling.h"

namespace sap {

template <int k>
class DeSaxceBlock {
 public:
  using Vector = ConeVector<k>;

  // The convex block, T = 1.
  DeSaxceBlock() = default;
  // `slip` is u_t with 0 along the normal.
  DeSaxceBlock(const ConeScaling<k>& scaling, double R_n, double rho, Vector slip) {
    slip[0] = 0;
    const double size = TailNorm(slip);
    if (!(size > 0)) return;
    for (int i = 1; i < k; ++i) t_[i] = slip[i] / size;
    double cosine = 0;
    for (int i = 1; i < k; ++i) cosine += t_[i] * scaling.n()[i - 1];
    // rho / (1 + rho t_0' M e_1) times 1 / det of M on (p+, p-): a sum of positive terms.
    const double eta2 = scaling.eta() * scaling.eta();
    const double E2 = scaling.E() * scaling.E();
    const double R_mean = 0.5 * eta2 * (E2 + 1 / E2);
    const double turned = 0.5 * eta2 * (E2 * (1 - cosine) + (1 + cosine) / E2);
    const double rest = eta2 * eta2 + R_n * rho + R_mean * R_n;
    factor_ = rho * (rest + R_mean * rho) / (rest + turned * rho);
  }

  // T x.
  Vector Turn(Vector x) const {
    x[0] += TailDot(t_, x);
    return x;
  }
  // (T Rb + W^2)^-1 x.
  Vector Multiply(const ConeBlock<k>& M, const Vector& x) const {
    const Vector y = M * x;
    const double share = factor_ * TailDot(t_, y);
    if (share == 0) return y;
    return PlusScaled(y, -share, M.FirstColumn());
  }

 private:
  Vector t_{};
  double factor_{0};
};

}  // namespace sap
