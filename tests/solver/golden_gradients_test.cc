// Derivatives of solutions against certified references; forward against reverse mode, and reverse
// mode against differences of solutions in 80-bit arithmetic, on problems with every constraint.
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "solver/solve.h"
#include "tests/solver/differentials.h"
#include "tests/support/constrained_problem.h"
#include "tests/support/golden_gradient.h"
#include "tests/support/input_moves.h"

namespace sap::test {
namespace {

const SolverOptions kTight{.relative_tolerance = 1e-10};

std::vector<Cotangent> Views(const std::vector<CotangentArrays>& arrays) {
  std::vector<Cotangent> cotangents;
  for (const CotangentArrays& cotangent : arrays) cotangents.push_back(cotangent.View());
  return cotangents;
}

std::vector<NamedGradient> GradientsOf(const ProblemArrays& arrays, const ContactProblem& problem,
                                       const std::vector<CotangentArrays>& cotangents, bool hold,
                                       Derivatives* derivatives) {
  *derivatives = Differentiate(problem, kTight, Views(cotangents), {}, {.hold_delassus = hold});
  std::vector<NamedGradient> gradients;
  for (const Gradient& gradient : derivatives->gradients) {
    gradients.push_back(Named(arrays.View(), problem, gradient));
  }
  return gradients;
}

std::vector<double> Draw(Random* random, size_t count, double size) {
  std::vector<double> values(count);
  for (double& x : values) x = size * Uniform(random, -1, 1);
  return values;
}

// A cotangent of all outputs, terms of similar size.
CotangentArrays DrawCotangent(Random* random, const ContactSolution& solution) {
  const auto inverse_size = [](const std::vector<double>& values) {
    double largest = 0;
    for (const double x : values) largest = std::max(largest, std::abs(x));
    return largest > 1e-9 ? 1 / largest : 1.0;
  };
  const auto draw = [&](const std::vector<double>& output) {
    return Draw(random, output.size(), inverse_size(output));
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

void ExpectFinite(const NamedGradient& gradient) {
  for (const auto& [input, values] : gradient) {
    const auto finite = [](double x) { return std::isfinite(x); };
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), finite)) << input;
  }
}

// 1e-12. Impulses of near-rigid rows are 1/R ~ 1/row_beta^2 times a difference of velocities, whose
// rounding errors they magnify, which tells below a row_beta of 0.01.
double IdentityTolerance(const ProblemArrays& arrays) {
  constexpr double kUnitRoundoff = 0.5 * std::numeric_limits<double>::epsilon();
  const double row_beta = arrays.regularization.row_beta;
  if (arrays.rows.entries.empty() || row_beta == 0) return 1e-12;
  return std::max(1e-12, kUnitRoundoff / (row_beta * row_beta));
}

// <cotangent, tangent of the answer> = <gradient, direction>, each input moved in proportion.
void ExpectForwardIsTheTransposeOfReverse(const ProblemArrays& arrays, bool hold) {
  Random random(1);
  const ContactProblem problem = Checked(arrays);
  const ContactProblemView inputs = arrays.View();
  const CotangentArrays cotangent = DrawCotangent(&random, Solve(problem, kTight));
  InputDifferential direction = NoDirection();
  std::map<std::string, std::vector<double>> moves;
  for (const std::string& name : InputNames()) {
    moves[name] = DrawMove(&random, arrays, name);
    SetDirection(name, moves[name], &direction);
  }
  std::vector<ProblemDifferential> change(1);
  FromInputs(inputs, problem, ViewOf(direction), &change[0]);
  const std::vector<Cotangent> cotangents{cotangent.View()};
  const Derivatives derivatives =
      Differentiate(problem, kTight, cotangents, change, {.hold_delassus = hold});
  const Product forward = Dot(cotangents[0], derivatives.tangents.at(0));
  const NamedGradient gradient = Named(inputs, problem, derivatives.gradients.at(0));
  ExpectFinite(gradient);
  Product reverse;
  for (const auto& [name, move] : moves) reverse.Add(gradient.at(name), move);
  EXPECT_NEAR(static_cast<double>(forward.value - reverse.value), 0,
              IdentityTolerance(arrays) * static_cast<double>(forward.size + reverse.size));
}

class GoldenGradientsTest : public ::testing::TestWithParam<std::string> {
 protected:
  GoldenGradientsTest()
      : golden_(LoadGoldenGradients(GetParam())), problem_(Checked(golden_.arrays)) {}

  const GoldenGradients golden_;
  const ContactProblem problem_;
};

TEST_P(GoldenGradientsTest, AreThoseOfTheReference) {
  Derivatives derivatives;
  const std::vector<NamedGradient> actual = GradientsOf(
      golden_.arrays, problem_, golden_.cotangents, golden_.hold_delassus, &derivatives);
  ASSERT_EQ(actual.size(), golden_.cotangents.size());
  for (const AdjointStatus status : derivatives.adjoint_status) {
    EXPECT_EQ(status, AdjointStatus::kDifferentiated);
  }
  const GradientError error = JudgeGradients(golden_, actual);
  if (error.over_allowed > 1 && !golden_.energy_bound.empty()) {
    EXPECT_TRUE(IsWithinEnergyBound(golden_, problem_, actual));
  } else {
    EXPECT_LE(error.over_allowed, 1) << error.input;
  }
}

// The margin of a velocity that is off by 1e-10 is off by as much, over the size of the numbers
// that it compares.
TEST_P(GoldenGradientsTest, KinkMarginsAreThoseOfTheReference) {
  const Derivatives derivatives = Differentiate(problem_, kTight, Views(golden_.cotangents));
  ASSERT_EQ(derivatives.kink_margin.size(), golden_.kink_margin.size());
  for (size_t i = 0; i < golden_.kink_margin.size(); ++i) {
    EXPECT_NEAR(derivatives.kink_margin[i], golden_.kink_margin[i],
                1e-9 + 1e-6 * golden_.kink_margin[i])
        << "island " << i;
  }
}

TEST_P(GoldenGradientsTest, ForwardModeIsTheTransposeOfReverseMode) {
  ExpectForwardIsTheTransposeOfReverse(golden_.arrays, golden_.hold_delassus);
}

INSTANTIATE_TEST_SUITE_P(Set, GoldenGradientsTest,
                         ::testing::ValuesIn(GoldenNames("", GoldenSet::kGradients)), NameOfGolden);

class FrictionGradientsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(FrictionGradientsTest, ForwardModeIsTheTransposeOfReverseMode) {
  ExpectForwardIsTheTransposeOfReverse(LoadGolden(GetParam()).arrays, false);
}

INSTANTIATE_TEST_SUITE_P(Set, FrictionGradientsTest, ::testing::ValuesIn(GoldenNames()),
                         NameOfGolden);

// L of a cotangent at the optimum of a problem, in 80-bit arithmetic.
class ExactLoss {
 public:
  ExactLoss(const ProblemArrays& arrays, const ContactSolution& solution,
            const CotangentArrays& cotangent)
      : cotangent_(cotangent), v_(ToVectorL(solution.velocity)) {
    const ConstrainedProblem exact(arrays);
    const int n = exact.num_velocities();
    MatrixL H(n, n);
    for (int j = 0; j < n; ++j) {
      const VectorL step = 1e-9L * VectorL::Unit(n, j);
      H.col(j) = (exact.Gradient(v_ + step) - exact.Gradient(v_ - step)) / 2e-9L;
    }
    factor_.compute(H);
    v_ = Optimum(exact);
  }

  // The loss of a problem near the one that this was made of.
  long double At(const ProblemArrays& arrays) const {
    const ConstrainedProblem exact(arrays);
    return LossOf(exact, Optimum(exact));
  }

 private:
  // By Newton's method with the Hessian of the first problem.
  VectorL Optimum(const ConstrainedProblem& exact) const {
    VectorL v = v_;
    for (int i = 0; i < 12; ++i) v -= factor_.solve(exact.Gradient(v));
    return v;
  }

  long double LossOf(const ConstrainedProblem& exact, const VectorL& v) const {
    const VectorL weights =
        exact.Stacked(cotangent_.impulse, cotangent_.angular_impulse, cotangent_.row_impulse);
    const VectorL of_velocity = exact.Stacked(
        cotangent_.contact_velocity, std::vector<double>(cotangent_.angular_impulse.size()),
        cotangent_.row_velocity);
    return ToVectorL(cotangent_.velocity).dot(v) + weights.dot(exact.Impulse(v)) +
           of_velocity.dot(exact.ConstraintVelocity(v)) + cotangent_.cost * exact.Cost(v);
  }

  const CotangentArrays& cotangent_;
  VectorL v_;
  Eigen::PartialPivLU<MatrixL> factor_;
};

class ConstraintGradientsTest : public ::testing::TestWithParam<std::string> {
 protected:
  ConstraintGradientsTest() : arrays_(LoadGolden(GetParam(), GoldenSet::kConstraints).arrays) {}

  const ProblemArrays arrays_;
};

TEST_P(ConstraintGradientsTest, ForwardModeIsTheTransposeOfReverseMode) {
  for (const bool hold : {false, true}) ExpectForwardIsTheTransposeOfReverse(arrays_, hold);
}

// Problems for which differences make sense: small, since the oracle is dense, and without the one
// whose solution was put on kinks.
std::vector<std::string> ComparableNames() {
  constexpr size_t kMostBytes = 60000;
  std::vector<std::string> names;
  for (const std::string& name : GoldenNames("", GoldenSet::kConstraints)) {
    const std::filesystem::path path = GoldenPath(name, GoldenSet::kConstraints);
    const size_t bytes = std::filesystem::file_size(path) * (path.extension() == ".gz" ? 3 : 1);
    if (bytes <= kMostBytes && name != "rows_kink") names.push_back(name);
  }
  return names;
}

class DifferencesOfSolutionsTest : public ConstraintGradientsTest {};

// Central differences, extrapolated from two steps. Where these two differ much there is a kink
// between, or the frame of a contact jumps; such inputs are not compared.
TEST_P(DifferencesOfSolutionsTest, MatchGradientsInEveryInput) {
  constexpr double kRounding = 3e-8;  // of differences of L, which is about 1
  const ContactProblem problem = Checked(arrays_);
  Random random(3);
  const ContactSolution solution = Solve(problem, kTight);
  const std::vector<CotangentArrays> cotangents{DrawCotangent(&random, solution)};
  Derivatives derivatives;
  const NamedGradient gradient =
      GradientsOf(arrays_, problem, cotangents, false, &derivatives).at(0);
  const ExactLoss loss(arrays_, solution, cotangents[0]);
  int compared = 0, crossed = 0;
  for (const std::string& name : InputNames()) {
    const std::vector<double> move = DrawMove(&random, arrays_, name);
    Product derivative;
    derivative.Add(gradient.at(name), move);
    if (derivative.size == 0) continue;
    const auto difference = [&](double step) {
      const long double change =
          loss.At(Moved(arrays_, name, move, step)) - loss.At(Moved(arrays_, name, move, -step));
      return static_cast<double>(change / (2.0L * step));
    };
    // A normal may be off unit length, and off its tangent, by 1e-6.
    const double step = name.starts_with("body_contacts.") ? 5e-7 : 2e-6;
    const double coarse = difference(step), fine = difference(step / 2);
    ++compared;
    if (std::abs(coarse - fine) > 1e-4 * derivative.size + 10 * kRounding) {
      ++crossed;
      continue;
    }
    EXPECT_NEAR(static_cast<double>(derivative.value), (4 * fine - coarse) / 3,
                1e-6 * derivative.size + kRounding)
        << name;
  }
  EXPECT_LE(crossed, std::max(1, compared / 4));
}

INSTANTIATE_TEST_SUITE_P(Set, ConstraintGradientsTest,
                         ::testing::ValuesIn(GoldenNames("", GoldenSet::kConstraints)),
                         NameOfGolden);
INSTANTIATE_TEST_SUITE_P(Set, DifferencesOfSolutionsTest, ::testing::ValuesIn(ComparableNames()),
                         NameOfGolden);

}  // namespace
}  // namespace sap::test
