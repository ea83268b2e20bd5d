// Random problems with all that is legal at once: answers against an optimum in 80-bit arithmetic,
// and gradients against differences of such optima, since forward and reverse mode share what could
// be wrong in both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver/solve.h"
#include "tests/solver/differentials.h"
#include "tests/support/constraint_errors.h"
#include "tests/support/exact_loss.h"
#include "tests/support/input_moves.h"
#include "tests/support/random_constraints.h"

namespace sap::test {
namespace {

constexpr int kSeeds = 70;
const SolverOptions kTight{.relative_tolerance = 1e-10};

double DistanceBound(const ContactSolution& solution) {
  double gap = 0;
  for (const IslandReport& report : solution.islands) gap += report.optimality_gap_bound;
  return std::sqrt(2 * gap);
}

// |D grad l| over the largest of |D A v| and |D J' gamma|.
long double Residual(const ConstrainedProblem& exact, const VectorL& v) {
  return exact.ScaledNorm(exact.Gradient(v)) /
         std::max({exact.ScaledNorm(exact.TimesA(v)),
                   exact.ScaledNorm(exact.TimesJt(exact.Impulse(v))),
                   std::numeric_limits<long double>::min()});
}

void ExpectEstimatesAsByTheRule(const ConstrainedProblem& exact, const ContactSolution& solution) {
  for (int i = 0; i < exact.num_contacts(); ++i) {
    const double w = solution.delassus_estimate[i];
    const auto expected = static_cast<double>(exact.contacts()[i].w);
    if (w == 0) continue;  // no parameter depends on it, or nothing moves the contact
    EXPECT_NEAR(w, expected, 1e-9 * expected) << "contact " << i;
  }
}

TEST(RandomProblemsTest, AnswersAreWithinTheirBoundOfTheOptimum) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const ProblemArrays arrays = RandomLegalProblem(seed);
    const ContactProblem problem = Checked(arrays);
    const ConstrainedProblem exact(arrays);
    const ContactSolution tight = Solve(problem, kTight);
    Reference reference;
    const VectorL optimum = ExactOptimum(exact, ToVectorL(tight.velocity)).Of(exact);
    ASSERT_LE(Residual(exact, optimum), 1e-14L);
    reference.velocity.assign(optimum.begin(), optimum.end());
    reference.cost = static_cast<double>(exact.Cost(optimum));
    const VectorL impulse = exact.Impulse(optimum);
    for (const bool islands : {true, false}) {
      const ContactSolution solution = Solve(problem, {.islands = islands});
      for (const IslandReport& report : solution.islands) {
        EXPECT_EQ(report.status, SolveStatus::kConverged);
      }
      const VectorL v = ToVectorL(solution.velocity);
      const long double rounding = 1e-15L * VelocityScale(exact, reference);
      EXPECT_LE(exact.NormA(v - optimum), DistanceBound(solution) + rounding);
      EXPECT_LE(DistanceBound(solution), 1e-2L * VelocityScale(exact, reference));
      reference.impulse = solution.impulse;
      reference.angular_impulse = solution.angular_impulse;
      reference.row_impulse = solution.row_impulse;
      EXPECT_LE(JudgeConstraints(exact, reference, solution).law, 1e-9);
      ExpectEstimatesAsByTheRule(exact, solution);
    }
  }
}

// Straight steps leave the curved surfaces of such contacts: without trial steps half of these
// problems take more than 40 iterations, and some end at the limit of 500.
TEST(RandomProblemsTest, StiffContactsOfTheSimilarLawTakeFewIterations) {
  constexpr int kProblems = 200;
  int islands = 0, above_40 = 0;
  for (int seed = 0; seed < kProblems; ++seed) {
    const ContactSolution solution = Solve(Checked(RandomStiffContacts(seed)));
    for (const IslandReport& report : solution.islands) {
      EXPECT_NE(report.status, SolveStatus::kIterationLimit) << seed;
      if (report.iterations > 40) ++above_40;
      ++islands;
    }
  }
  EXPECT_LE(above_40, islands / 10);
}

// All inputs move at once. Two sizes of steps disagree where there is a kink between, or the frame
// of a contact jumps; such problems are not compared.
TEST(RandomProblemsTest, GradientsAreWhatDifferencesOfOptimaSay) {
  constexpr double kStep = 2e-7;      // frames may be off by 1e-6
  constexpr double kRounding = 1e-7;  // of differences of L, which is about 1
  int compared = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const ProblemArrays arrays = RandomLegalProblem(seed);
    const ContactProblem problem = Checked(arrays);
    Random random(seed);
    const ContactSolution solution = Solve(problem, kTight);
    const CotangentArrays cotangent = DrawCotangent(&random, solution);
    const Cotangent view = cotangent.View();
    const Derivatives derivatives = Differentiate(problem, kTight, {&view, 1});
    const NamedGradient gradient = Named(arrays.View(), problem, derivatives.gradients[0]);
    const auto moved = [&](double step) {
      Random of_moves(seed);
      ProblemArrays result = arrays;
      for (const std::string& name : InputNames()) {
        result = Moved(result, name, DrawMove(&of_moves, arrays, name), step);
      }
      return result;
    };
    Random of_moves(seed);
    Product derivative;
    for (const std::string& name : InputNames()) {
      derivative.Add(gradient.at(name), DrawMove(&of_moves, arrays, name));
    }
    const ExactLoss loss(arrays, solution, cotangent);
    const auto difference = [&](double step) {
      return static_cast<double>((loss.At(moved(step)) - loss.At(moved(-step))) / (2.0L * step));
    };
    const double coarse = difference(kStep), fine = difference(kStep / 2);
    const auto size = static_cast<double>(derivative.size);
    if (std::abs(coarse - fine) > 1e-5 * size + 10 * kRounding) continue;
    EXPECT_NEAR(static_cast<double>(derivative.value), (4 * fine - coarse) / 3,
                1e-6 * size + kRounding);
    ++compared;
  }
  EXPECT_GE(compared, kSeeds * 3 / 4);
}

}  // namespace
}  // namespace sap::test
