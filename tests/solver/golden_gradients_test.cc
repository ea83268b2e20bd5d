// Derivatives of solutions against certified references; forward against reverse mode, and reverse
// mode against differences of solutions in 80-bit arithmetic, on problems with every constraint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "solver/solve.h"
#include "tests/solver/differentials.h"
#include "tests/support/exact_loss.h"
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
