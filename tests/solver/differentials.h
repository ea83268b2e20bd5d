// Random directions and cotangents of a problem, and the products of which both modes make the
// same number.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "solver/differentiate.h"
#include "tests/support/random_problem.h"

namespace sap::test {

// Calls body(a, b) for each number of one differential and the same of the other.
template <typename Body>
void ForEachPair(ProblemDifferential& a, ProblemDifferential& b, Body&& body) {
  body(a.time_step, b.time_step);
  body(a.beta, b.beta);
  body(a.sigma, b.sigma);
  body(a.row_beta, b.row_beta);
  body(a.stiction_speed, b.stiction_speed);
  body(a.reference_time_step, b.reference_time_step);
  using Array = std::vector<double> ProblemDifferential::*;
  for (const Array array :
       {&ProblemDifferential::dynamics_matrix, &ProblemDifferential::coupling_block,
        &ProblemDifferential::v_star, &ProblemDifferential::jacobian, &ProblemDifferential::v_hat,
        &ProblemDifferential::surface_velocity, &ProblemDifferential::tau_d,
        &ProblemDifferential::mu, &ProblemDifferential::mu_2, &ProblemDifferential::stiffness,
        &ProblemDifferential::R_t, &ProblemDifferential::R_n, &ProblemDifferential::w,
        &ProblemDifferential::adhesion, &ProblemDifferential::angular_jacobian,
        &ProblemDifferential::angular_v_hat, &ProblemDifferential::row_coefficients}) {
    ASSERT_EQ((a.*array).size(), (b.*array).size());
    for (size_t i = 0; i < (a.*array).size(); ++i) body((a.*array)[i], (b.*array)[i]);
  }
  for (size_t i = 0; i < a.hunt_crossley.size(); ++i) {
    body(a.hunt_crossley[i].elastic_force, b.hunt_crossley[i].elastic_force);
    body(a.hunt_crossley[i].dissipation, b.hunt_crossley[i].dissipation);
    body(a.hunt_crossley[i].lagged_normal_impulse, b.hunt_crossley[i].lagged_normal_impulse);
  }
  for (size_t i = 0; i < a.angular_friction.size(); ++i) {
    for (int axis = 0; axis < 3; ++axis) {
      body(a.angular_friction[i][axis], b.angular_friction[i][axis]);
    }
  }
  using Number = double RowParameters::*;
  for (size_t i = 0; i < a.rows.size(); ++i) {
    for (const Number number :
         {&RowParameters::v_hat, &RowParameters::offset, &RowParameters::stiffness,
          &RowParameters::relaxation_time, &RowParameters::force_lower, &RowParameters::force_upper,
          &RowParameters::force_offset, &RowParameters::given_R, &RowParameters::given_w,
          &RowParameters::slip_parameter}) {
      body(a.rows[i].*number, b.rows[i].*number);
    }
  }
}

// A sum, and the sum of the sizes of its terms.
struct Product {
  long double value{0}, size{0};
  void Add(long double a, long double b) {
    value += a * b;
    size += std::abs(a * b);
  }
  void Add(std::span<const double> a, const std::vector<double>& b) {
    if (a.empty()) return;
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) Add(a[i], b[i]);
  }
};

inline Product Dot(ProblemDifferential a, ProblemDifferential b) {
  Product product;
  ForEachPair(a, b, [&](double x, double y) { product.Add(x, y); });
  return product;
}
// Outputs: a ContactSolution, or the Tangent of one.
template <typename Outputs>
Product Dot(const Cotangent& cotangent, const Outputs& outputs) {
  Product product;
  product.Add(cotangent.velocity, outputs.velocity);
  product.Add(cotangent.impulse, outputs.impulse);
  product.Add(cotangent.contact_velocity, outputs.contact_velocity);
  product.Add(cotangent.row_impulse, outputs.row_impulse);
  product.Add(cotangent.row_velocity, outputs.row_velocity);
  product.Add(cotangent.angular_impulse, outputs.angular_impulse);
  product.Add(cotangent.cost, outputs.cost);
  return product;
}

// Numbers of order one, dA symmetric.
inline ProblemDifferential RandomDirection(const ContactProblem& problem, Random* random) {
  ProblemDifferential direction, unused;
  direction.Reset(problem);
  unused.Reset(problem);
  ForEachPair(direction, unused, [&](double& x, double) { x = Uniform(random, -1, 1); });
  for (int tree = 0; tree < problem.num_trees(); ++tree) {
    const int n = problem.dofs()[tree];
    double* dA = direction.dynamics_matrix.data() + problem.matrix_start()[tree];
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) dA[i * n + j] = dA[j * n + i];
    }
  }
  return direction;
}

// A Cotangent with arrays of its own, all of them filled.
struct RandomCotangent {
  std::vector<double> velocity, impulse, contact_velocity, row_impulse, row_velocity, angular;
  double cost;

  RandomCotangent(const ContactProblem& problem, Random* random) {
    const auto fill = [&](size_t size, std::vector<double>* values) {
      values->resize(size);
      for (double& value : *values) value = Uniform(random, -1, 1);
    };
    fill(problem.num_velocities(), &velocity);
    fill(3 * problem.num_contacts(), &impulse);
    fill(3 * problem.num_contacts(), &contact_velocity);
    fill(problem.num_rows(), &row_impulse);
    fill(problem.num_rows(), &row_velocity);
    fill(3 * problem.num_angular(), &angular);
    cost = Uniform(random, -1, 1);
  }
  Cotangent View() const {
    return {.velocity = velocity,
            .impulse = impulse,
            .contact_velocity = contact_velocity,
            .row_impulse = row_impulse,
            .row_velocity = row_velocity,
            .angular_impulse = angular,
            .cost = cost};
  }
};

// Reverse and forward mode of a problem, from random seeds, have one product.
inline void ExpectModesAreTransposes(const ContactProblem& problem, uint64_t seed,
                                     const SolverOptions& options, bool hold_delassus) {
  Random random(seed);
  const RandomCotangent cotangent(problem, &random);
  const Cotangent view = cotangent.View();
  const ProblemDifferential direction = RandomDirection(problem, &random);
  const Derivatives derivatives = Differentiate(problem, options, {&view, 1}, {&direction, 1},
                                                {.hold_delassus = hold_delassus});
  const Product forward = Dot(view, derivatives.tangents[0]);
  const Product reverse = Dot(derivatives.gradients[0].problem, direction);
  EXPECT_NEAR(static_cast<double>(forward.value), static_cast<double>(reverse.value),
              1e-12 * static_cast<double>(forward.size + reverse.size));
  EXPECT_GT(std::abs(reverse.value), 0);
}

}  // namespace sap::test
