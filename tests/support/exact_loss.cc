#include "tests/support/exact_loss.h"

#include <algorithm>
#include <cmath>

namespace sap::test {

ExactOptimum::ExactOptimum(const ConstrainedProblem& problem, const VectorL& near) : near_(near) {
  const int n = problem.num_velocities();
  MatrixL H(n, n);
  for (int j = 0; j < n; ++j) {
    const VectorL step = 1e-9L * VectorL::Unit(n, j);
    H.col(j) = (problem.Gradient(near + step) - problem.Gradient(near - step)) / 2e-9L;
  }
  factor_.compute(H);
  near_ = Of(problem);
}

VectorL ExactOptimum::Of(const ConstrainedProblem& problem) const {
  VectorL v = near_;
  for (int i = 0; i < 12; ++i) v -= factor_.solve(problem.Gradient(v));
  return v;
}

CotangentArrays DrawCotangent(Random* random, const ContactSolution& solution) {
  const auto inverse_size = [](const std::vector<double>& values) {
    double largest = 0;
    for (const double x : values) largest = std::max(largest, std::abs(x));
    return largest > 1e-9 ? 1 / largest : 1.0;
  };
  const auto draw = [&](const std::vector<double>& output) {
    std::vector<double> values(output.size());
    const double size = inverse_size(output);
    for (double& x : values) x = size * Uniform(random, -1, 1);
    return values;
  };
  CotangentArrays cotangent;
  cotangent.velocity = draw(solution.velocity);
  cotangent.impulse = draw(solution.impulse);
  cotangent.contact_velocity = draw(solution.contact_velocity);
  cotangent.row_impulse = draw(solution.row_impulse);
  cotangent.row_velocity = draw(solution.row_velocity);
  cotangent.angular_impulse = draw(solution.angular_impulse);
  cotangent.cost = inverse_size({solution.cost});
  return cotangent;
}

ExactLoss::ExactLoss(const ProblemArrays& arrays, const ContactSolution& solution,
                     const CotangentArrays& cotangent)
    : cotangent_(cotangent), optimum_(ConstrainedProblem(arrays), ToVectorL(solution.velocity)) {}

long double ExactLoss::At(const ProblemArrays& arrays) const {
  const ConstrainedProblem exact(arrays);
  const VectorL v = optimum_.Of(exact);
  const VectorL weights =
      exact.Stacked(cotangent_.impulse, cotangent_.angular_impulse, cotangent_.row_impulse);
  const VectorL of_velocity = exact.Stacked(cotangent_.contact_velocity,
                                            std::vector<double>(cotangent_.angular_impulse.size()),
                                            cotangent_.row_velocity);
  return ToVectorL(cotangent_.velocity).dot(v) + weights.dot(exact.Impulse(v)) +
         of_velocity.dot(exact.ConstraintVelocity(v)) + cotangent_.cost * exact.Cost(v);
}

}  // namespace sap::test
