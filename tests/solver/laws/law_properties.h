// Properties of the law of every kind of constraint.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/laws/law_types.h"
#include "tests/support/dense_algebra.h"
#include "tests/support/random_problem.h"

namespace sap::test {

constexpr double kDoubleEpsilon = std::numeric_limits<double>::epsilon();

// One constraint at one velocity, with the sizes that differences and tolerances are measured by.
template <typename Law>
struct LawCase {
  static constexpr int kRows = Law::kRows;

  typename Law::Parameters p;
  LawVector<kRows> v;
  LawVector<kRows> step;       // of differences: small against the distance over which G changes
  LawVector<kRows> stiffness;  // bound on the diagonal of the plain G: 0 where a row has no impulse
  double cost_size;            // sum of the magnitudes of the terms of the cost, about v
  double impulse_size;         // the same of the impulse
};

template <typename Law>
LawVector<Law::kRows> Moved(const LawVector<Law::kRows>& v, int row, double by) {
  LawVector<Law::kRows> moved = v;
  moved[row] += by;
  return moved;
}

// Derivative of f(h) at 0 by four values; the error is of fourth order in h.
template <typename Function>
double Difference(const Function& f, double h) {
  return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

// The impulse is minus the derivative of the cost, and G minus that of the impulse. False, and
// nothing is tested, where a step crosses into another region.
template <typename Law, typename Region>
bool ExpectDerivativesMatchDifferences(const LawCase<Law>& c, const Region& region) {
  constexpr double kTolerance = 1e-7;
  constexpr int n = Law::kRows;
  const auto at = [&](int row, double by) { return Law::At(c.p, Moved<Law>(c.v, row, by)); };
  const auto point = Law::At(c.p, c.v);
  double power = 20 * kDoubleEpsilon * c.cost_size, curvature = 0;
  for (int k = 0; k < n; ++k) {
    for (const double by : {-2.0, -1.0, 1.0, 2.0}) {
      if (region(c.p, at(k, by * c.step[k])) != region(c.p, point)) return false;
    }
    power += kTolerance * c.step[k] * std::abs(point.gamma[k]);
    curvature += kTolerance * c.step[k] * c.step[k] * c.stiffness[k];
  }
  const LawMatrix<n> G = Law::Hessian(c.p, point);
  for (int k = 0; k < n; ++k) {
    const double h = c.step[k];
    const double slope = Difference([&](double by) { return at(k, by).cost; }, h);
    EXPECT_NEAR(-slope * h, point.gamma[k] * h, power) << "row " << k;
    for (int i = 0; i < n; ++i) {
      const double entry = -Difference([&](double by) { return at(k, by).gamma[i]; }, h);
      EXPECT_NEAR(entry * h * c.step[i], G(i, k) * h * c.step[i], curvature) << i << ", " << k;
    }
  }
  return true;
}

// A convex function lies above its tangents, from either end. As the two ends come close this holds
// to rounding only if cost and impulse are continuous where they change regions.
template <typename Law>
void ExpectConvexTowards(const LawCase<Law>& c, const LawVector<Law::kRows>& end) {
  const auto a = Law::At(c.p, c.v);
  const auto b = Law::At(c.p, end);
  double from_a = b.cost - a.cost, from_b = a.cost - b.cost, size = c.cost_size;
  for (int k = 0; k < Law::kRows; ++k) {
    const double d = end[k] - c.v[k];
    from_a += a.gamma[k] * d;
    from_b -= b.gamma[k] * d;
    size += std::abs(a.cost) + std::abs(b.cost) + std::abs(d) * std::abs(b.gamma[k]);
  }
  EXPECT_GE(from_a, -64 * kDoubleEpsilon * size);
  EXPECT_GE(from_b, -64 * kDoubleEpsilon * size);
}

template <typename Law>
LawVector<Law::kRows> RandomlyMoved(const LawVector<Law::kRows>& v, double by, Random* random) {
  LawVector<Law::kRows> moved = v;
  for (double& component : moved) component += by * Uniform(random, -1, 1);
  return moved;
}

template <typename Law>
typename Law::DualDirection RandomDualDirection(Random* random) {
  typename Law::DualDirection s{};
  double norm2 = 0;
  for (double& component : s) {
    component = Uniform(random, -1, 1);
    norm2 += component * component;
  }
  const double radius = UniformInt(random, 0, 1) == 0 ? 1 : Uniform(random, 0, 1);
  for (double& component : s) component *= radius / std::sqrt(norm2);
  return s;
}

template <typename Law>
double NormOf(const typename Law::DualDirection& s) {
  double norm2 = 0;
  for (const double component : s) norm2 += component * component;
  return std::sqrt(norm2);
}

// G where rows are divided by the roots of the stiffness: plain it is at most 1.
template <typename Law>
Eigen::Matrix<double, Law::kRows, Law::kRows> Scaled(const LawCase<Law>& c,
                                                     const LawMatrix<Law::kRows>& G) {
  Eigen::Matrix<double, Law::kRows, Law::kRows> scaled;
  for (int i = 0; i < Law::kRows; ++i) {
    for (int j = 0; j < Law::kRows; ++j) {
      const double size = std::sqrt(c.stiffness[i]) * std::sqrt(c.stiffness[j]);
      EXPECT_TRUE(size > 0 || G(i, j) == 0) << i << ", " << j;
      EXPECT_EQ(G(i, j), G(j, i));
      scaled(i, j) = size > 0 ? G(i, j) / size : 0;
    }
  }
  return scaled;
}

template <typename Law>
void ExpectHessianBetweenZeroAnd(double bound, const LawCase<Law>& c,
                                 const LawMatrix<Law::kRows>& G) {
  using Matrix = Eigen::Matrix<double, Law::kRows, Law::kRows>;
  const Matrix scaled = Scaled(c, G);
  ASSERT_TRUE(scaled.allFinite());
  const Eigen::VectorXd eigenvalues = EigenvaluesOf(scaled);
  EXPECT_GE(eigenvalues.minCoeff(), -32 * kDoubleEpsilon * (1 + scaled.trace()));
  EXPECT_LE(eigenvalues.maxCoeff(), bound * (1 + 1e-13));
}

// Up to rounding. Products and sums may be fused in one and not in the other.
template <typename Law>
void ExpectNear(const LawCase<Law>& c, const LawMatrix<Law::kRows>& G,
                const LawMatrix<Law::kRows>& expected) {
  EXPECT_LE((Scaled(c, G) - Scaled(c, expected)).norm(), 16 * kDoubleEpsilon);
}

// The bound holds for all velocities in a box around v, its corners among them.
template <typename Law>
void ExpectImpulseErrorCovers(const LawCase<Law>& c, double size, Random* random) {
  LawVector<Law::kRows> error;
  for (double& component : error) component = size * Uniform(random, 0, 1);
  const auto point = Law::At(c.p, c.v);
  const LawVector<Law::kRows> bound = Law::ImpulseError(c.p, point, c.v, error);
  for (int trial = 0; trial < 16; ++trial) {
    LawVector<Law::kRows> v = c.v;
    for (int k = 0; k < Law::kRows; ++k) {
      const double corner = UniformInt(random, 0, 1) == 0 ? -1 : 1;
      v[k] += error[k] * (trial < 8 ? corner : Uniform(random, -1, 1));
    }
    const auto moved = Law::At(c.p, v);
    for (int k = 0; k < Law::kRows; ++k) {
      const double change = std::abs(moved.gamma[k] - point.gamma[k]);
      EXPECT_LE(change, bound[k] * (1 + 1e-12) + 64 * kDoubleEpsilon * c.impulse_size)
          << "row " << k;
    }
  }
}

// Masses by a power of two: impulse, cost and G by the same, directions unchanged, to the bit.
template <typename Law>
void ExpectScalesWithMass(const LawCase<Law>& c, const typename Law::Parameters& heavier,
                          double factor, Random* random) {
  const auto point = Law::At(c.p, c.v);
  const auto scaled = Law::At(heavier, c.v);
  EXPECT_EQ(scaled.cost, factor * point.cost);
  auto s = RandomDualDirection<Law>(random);
  const auto G = Law::Hessian(c.p, point, s);
  const auto scaled_G = Law::Hessian(heavier, scaled, s);
  for (int i = 0; i < Law::kRows; ++i) {
    EXPECT_EQ(scaled.gamma[i], factor * point.gamma[i]);
    for (int j = 0; j < Law::kRows; ++j) EXPECT_EQ(scaled_G(i, j), factor * G(i, j));
  }
  EXPECT_EQ(Law::IsKinked(c.p, point), Law::IsKinked(heavier, scaled));
  EXPECT_EQ(Law::StartDirection(c.p, point), Law::StartDirection(heavier, scaled));
  auto scaled_s = s;
  const LawVector<Law::kRows> dv = RandomlyMoved<Law>({}, 0.1, random);
  Law::UpdateDirection(c.p, point, dv, &s);
  Law::UpdateDirection(heavier, scaled, dv, &scaled_s);
  EXPECT_EQ(s, scaled_s);
}

}  // namespace sap::test
