// Products with the Jacobian block J, 3 x n row-major, of one contact and one tree.
//
// Sizes known at compile time unroll and vectorize; ForSize picks them: six degrees of freedom, a
// free body, are by far the most frequent, everything else runs through loops.
#pragma once

#include <cstdint>
#include <type_traits>

#include "solver/sap/friction_cone.h"

namespace sap {

using SixDofs = std::integral_constant<int, 6>;

// Calls body(SixDofs()) or body(n).
template <typename Body>
inline void ForSize(int n, Body&& body) {
  if (n == 6) {
    body(SixDofs());
  } else {
    body(n);
  }
}

// v_c += J v.
template <typename Size>
inline void AddJv(const double* J, Size n, const double* v, ContactVector<double>* v_c) {
  double x = 0, y = 0, z = 0;
  for (int i = 0; i < n; ++i) {
    x += J[i] * v[i];
    y += J[n + i] * v[i];
    z += J[2 * n + i] * v[i];
  }
  v_c->x += x;
  v_c->y += y;
  v_c->n += z;
}

// f += J' gamma.
template <typename Size>
inline void AddJtGamma(const double* __restrict J, Size n, const ContactVector<double>& gamma,
                       double* __restrict f) {
  for (int i = 0; i < n; ++i) {
    f[i] += J[i] * gamma.x + J[n + i] * gamma.y + J[2 * n + i] * gamma.n;
  }
}

// A row of six as four lanes and two.
struct SixLanes {
  Lanes4 head;
  Lanes2 tail;

  explicit SixLanes(const double* row) : head(Load<Lanes4>(row)), tail(Load<Lanes2>(row + 4)) {}
  SixLanes(const Lanes4& first, const Lanes2& last) : head(first), tail(last) {}
  SixLanes operator*(double factor) const { return {head * factor, tail * factor}; }
  SixLanes operator+(const SixLanes& other) const { return {head + other.head, tail + other.tail}; }
};

// H += J_a' G J_b for a six-column J_b: three rows of G J_b in registers, then one row of H per
// column of J_a.
template <typename Size>
inline void AddJtGJ(const double* __restrict J_a, Size n_a, const SymmetricMatrix3<double>& G,
                    const double* __restrict J_b, SixDofs, double* __restrict H) {
  const SixLanes x(J_b);
  const SixLanes y(J_b + 6);
  const SixLanes n(J_b + 12);
  const SixLanes g_x = x * G.xx + y * G.xy + n * G.xn;
  const SixLanes g_y = x * G.xy + y * G.yy + n * G.yn;
  const SixLanes g_n = x * G.xn + y * G.yn + n * G.nn;
  for (int i = 0; i < n_a; ++i) {
    double* row = H + 6 * i;
    const SixLanes sum = SixLanes(row) + g_x * J_a[i] + g_y * J_a[n_a + i] + g_n * J_a[2 * n_a + i];
    Store(row, sum.head);
    Store(row + 4, sum.tail);
  }
}

// H += J_a' G J_b, n_a x n_b row-major.
template <typename Size>
inline void AddJtGJ(const double* __restrict J_a, Size n_a, const SymmetricMatrix3<double>& G,
                    const double* __restrict J_b, int n_b, double* __restrict H) {
  for (int i = 0; i < n_a; ++i) {
    const double a_x = J_a[i];
    const double a_y = J_a[n_a + i];
    const double a_n = J_a[2 * n_a + i];
    const double g_x = a_x * G.xx + a_y * G.xy + a_n * G.xn;
    const double g_y = a_x * G.xy + a_y * G.yy + a_n * G.yn;
    const double g_n = a_x * G.xn + a_y * G.yn + a_n * G.nn;
    for (int j = 0; j < n_b; ++j) {
      H[i * n_b + j] += g_x * J_b[j] + g_y * J_b[n_b + j] + g_n * J_b[2 * n_b + j];
    }
  }
}

// y = A x for a symmetric n x n row-major A.
template <typename Size>
inline void MultiplySymmetric(const double* __restrict A, Size n, const double* __restrict x,
                              double* __restrict y) {
  for (int j = 0; j < n; ++j) y[j] = A[j] * x[0];
  for (int i = 1; i < n; ++i) {
    for (int j = 0; j < n; ++j) y[j] += A[i * n + j] * x[i];
  }
}

}  // namespace sap
