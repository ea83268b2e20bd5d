#include "solver/newton/pair_certificate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "solver/solve.h"
#include "tests/support/constrained_problem.h"
#include "tests/support/exact_loss.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

double PairBound(const ContactSolution& solution) {
  double bound = 0;
  for (const IslandReport& report : solution.islands) bound += report.optimality_gap_bound;
  return bound;
}

// R / w from 1e-10 to 1.
ProblemArrays DrawStiffProblem(uint64_t seed) {
  ProblemArrays arrays = RandomConstraintsOfEveryKind(
      seed, {.contacts = {.trees = 5, .contacts = 10, .max_dofs = 6}, .rows = 4});
  Random random(seed);
  arrays.regularization.beta = LogUniform(&random, 6.3e-5, 1);
  arrays.regularization.row_beta = LogUniform(&random, 6.3e-5, 1);
  arrays.regularization.sigma = LogUniform(&random, 1e-10, 1e-2);
  return arrays;
}

// The optimum is that of Newton's method in 80 bits from the tightest answer in doubles, or that
// answer where it costs less: no bound may be below the difference to either.
TEST(PairCertificateTest, BoundIsNeverBelowTheTrueGapAtAnyRegularization) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const ProblemArrays arrays = DrawStiffProblem(seed);
    const ContactProblem problem = Checked(arrays);
    const ConstrainedProblem exact(arrays);
    SolverOptions options{.relative_tolerance = 1e-14, .interior_point = InteriorPoint::kAlways};
    const VectorL tight = ToVectorL(Solve(problem, options).velocity);
    const long double newton = exact.Cost(ExactOptimum(exact, tight).Of(exact));
    long double optimum = exact.Cost(tight);
    if (newton < optimum) optimum = newton;
    options.relative_tolerance = 1e-6;
    for (options.max_iterations = 4; options.max_iterations <= 64; options.max_iterations *= 4) {
      const ContactSolution solution = Solve(problem, options);
      const VectorL v = ToVectorL(solution.velocity);
      const long double rounding =
          16 * std::numeric_limits<long double>::epsilon() * exact.CostMagnitude(v);
      EXPECT_LE(static_cast<double>(exact.Cost(v) - optimum - rounding), PairBound(solution))
          << "seed " << seed << ", at most " << options.max_iterations << " iterations";
    }
  }
}

}  // namespace
}  // namespace sap::test
