// Derivatives of solutions: identities that hold of every problem, differences, closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "solver/solve.h"
#include "tests/solver/differentials.h"
#include "tests/support/random_constraints.h"
#include "tests/support/same_bits.h"

namespace sap::test {
namespace {

constexpr SolverOptions kTight{.relative_tolerance = 1e-10};

Derivatives Differentiated(const ContactProblem& problem, const RandomCotangent& cotangent,
                           const DerivativeOptions& options = {}, ContactSolution* solution = {}) {
  const Cotangent view = cotangent.View();
  return Differentiate(problem, kTight, {&view, 1}, {}, options, solution);
}

class BothModesTest : public testing::TestWithParam<int> {};

void ExpectTransposed(const ContactProblem& problem, uint64_t seed, bool hold_delassus,
                      bool islands) {
  SolverOptions options = kTight;
  options.islands = islands;
  ExpectModesAreTransposes(problem, seed, options, hold_delassus);
}

TEST_P(BothModesTest, AreTransposesForConstraintsOfEveryKind) {
  for (const int size : {3, 12}) {
    ProblemArrays arrays = RandomConstraintsOfEveryKind(
        GetParam(), {.contacts = {.trees = size, .contacts = 3 * size}, .rows = size});
    for (const DelassusRule rule : {DelassusRule::kFull, DelassusRule::kDiagonal}) {
      arrays.regularization.rule = rule;
      const ContactProblem problem = Checked(arrays);
      ExpectTransposed(problem, GetParam(), false, true);
      ExpectTransposed(problem, GetParam() + 100, true, true);
      ExpectTransposed(problem, GetParam() + 200, false, false);
    }
  }
}

TEST_P(BothModesTest, AreTransposesForBodiesAndLargeTrees) {
  ExpectTransposed(Checked(RandomBodiesInContact(GetParam(), 20, 60)), GetParam(), false, true);
  ExpectTransposed(Checked(LargeTree(70 + GetParam(), 12)), GetParam(), false, true);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BothModesTest, testing::Range(0, 8));

// One array of a problem, and the derivative with respect to it.
struct InputClass {
  const char* name;
  std::vector<double>* (*values)(ProblemArrays*);
  std::vector<double> (*derivative)(const ProblemDifferential&);
};
template <double RowParameters::*member>
std::vector<double> OfRows(const ProblemDifferential& g) {
  std::vector<double> values;
  for (const RowParameters& row : g.rows) values.push_back(row.*member);
  return values;
}
std::vector<double> SumOfCoefficients(const ProblemDifferential& g) {
  std::vector<double> sum = g.mu;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += g.mu_2[i];
  return sum;
}
const InputClass kInputs[] = {
    {"v*", [](ProblemArrays* a) { return &a->trees.free_motion_velocity; },
     [](const ProblemDifferential& g) { return g.v_star; }},
    {"jacobian", [](ProblemArrays* a) { return &a->contacts.jacobian; },
     [](const ProblemDifferential& g) { return g.jacobian; }},
    {"angular jacobian", [](ProblemArrays* a) { return &a->contacts.angular_jacobian; },
     [](const ProblemDifferential& g) { return g.angular_jacobian; }},
    {"dynamics matrix", [](ProblemArrays* a) { return &a->trees.dynamics_matrix; },
     [](const ProblemDifferential& g) { return g.dynamics_matrix; }},
    {"coefficients of rows", [](ProblemArrays* a) { return &a->rows.coefficient; },
     [](const ProblemDifferential& g) { return g.row_coefficients; }},
    {"stiffness", [](ProblemArrays* a) { return &a->contacts.law.stiffness; },
     [](const ProblemDifferential& g) { return g.stiffness; }},
    {"friction", [](ProblemArrays* a) { return &a->contacts.law.friction; }, SumOfCoefficients},
    {"adhesion", [](ProblemArrays* a) { return &a->contacts.law.adhesion; },
     [](const ProblemDifferential& g) { return g.adhesion; }},
    {"force_upper", [](ProblemArrays* a) { return &a->rows.force_upper; },
     OfRows<&RowParameters::force_upper>},
    {"stiffness of rows", [](ProblemArrays* a) { return &a->rows.stiffness; },
     OfRows<&RowParameters::stiffness>},
    {"slip parameter", [](ProblemArrays* a) { return &a->rows.slip_parameter; },
     OfRows<&RowParameters::slip_parameter>},
};

// L of the solution of arrays moved along a direction in one array.
Product LossAt(ProblemArrays arrays, const InputClass& input, const std::vector<double>& direction,
               double by, const Cotangent& cotangent) {
  std::vector<double>& values = *input.values(&arrays);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) values[i] += by * direction[i];
    // One number stands for both tangents of a law of Hunt & Crossley.
    std::vector<double>& mu_2 = arrays.contacts.law.friction_2;
    if (&values == &arrays.contacts.law.friction && mu_2[i] > 0) mu_2[i] += by * direction[i];
  }
  return Dot(cotangent, Solve(Checked(arrays), {.relative_tolerance = 1e-14}));
}

// A direction of relative size one, symmetric for matrices: these are scaled as a whole.
std::vector<double> RelativeDirection(const std::vector<double>& values, bool as_a_whole,
                                      Random* random) {
  std::vector<double> direction;
  for (const double value : values) {
    const double share = as_a_whole ? 1 : Uniform(random, -1, 1);
    direction.push_back(std::isfinite(value) ? share * value : 0);
  }
  return direction;
}

// Steps of 1e-6 of each number. Solves to 1e-14 of the momentum know the loss to some times that,
// since impulses magnify errors of the velocity: 1e-13 of the loss divided by the step is noise.
// Where a step crosses a kink two sizes of steps disagree, and nothing is tested.
TEST(DifferentiateTest, GradientsAreWhatDifferencesOfSolutionsSay) {
  std::vector<int> tested(std::size(kInputs));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ProblemArrays arrays =
        RandomConstraintsOfEveryKind(seed, {.contacts = {.trees = 5, .contacts = 10}, .rows = 5});
    const ContactProblem problem = Checked(arrays);
    Random random(seed);
    const RandomCotangent cotangent(problem, &random);
    const Derivatives derivatives = Differentiated(problem, cotangent);
    for (size_t k = 0; k < std::size(kInputs); ++k) {
      const InputClass& input = kInputs[k];
      const std::vector<double>& values = *input.values(&arrays);
      if (values.empty()) continue;
      auto direction = RelativeDirection(values, &values == &arrays.trees.dynamics_matrix, &random);
      if (&values == &arrays.rows.force_upper) {  // bounds that are equal stay so
        for (size_t i = 0; i < values.size(); ++i) {
          if (values[i] == arrays.rows.force_lower[i]) direction[i] = 0;
        }
      }
      const auto loss = [&](double h) {
        return LossAt(arrays, input, direction, h, cotangent.View());
      };
      const auto difference = [&](double h) {
        return static_cast<double>((loss(h).value - loss(-h).value) / (2 * h));
      };
      constexpr double kStep = 1e-6, kNoise = 1e-13;
      const double coarse = difference(2 * kStep), fine = difference(kStep);
      Product product;
      product.Add(direction, input.derivative(derivatives.gradients[0].problem));
      const double tolerance = 1e-6 * static_cast<double>(product.size) +
                               kNoise / kStep * static_cast<double>(loss(0).size);
      if (std::abs(coarse - fine) > tolerance) continue;
      EXPECT_NEAR(static_cast<double>(product.value), fine, tolerance)
          << input.name << ", seed " << seed;
      ++tested[k];
    }
  }
  for (size_t k = 0; k < tested.size(); ++k) EXPECT_GE(tested[k], 3) << kInputs[k].name;
}

// A block of mass m on a plane, v = (v_x, v_y, v_z), pushed by v*.
struct Block {
  static constexpr double kMass = 3, kTimeStep = 0.01, kMu = 0.5;
  ProblemArrays arrays;

  explicit Block(double v_x, double v_z) {
    arrays.time_step = kTimeStep;
    arrays.AddTree(kMass * Eigen::Matrix3d::Identity(), Eigen::Vector3d(v_x, 0, v_z));
    arrays.AddContact(0, Eigen::Matrix3d::Identity(), {.stiffness = 1e8, .friction = kMu});
  }
  // w = 1/(sqrt(3) m), R_t = sigma w, R_n = w / (4 pi^2).
  static double w() { return 1 / (std::sqrt(3.0) * kMass); }
  static double R_t() { return 1e-3 * w(); }
  static double R_n() { return w() / (4 * M_PI * M_PI); }
};

Gradient OfSpeed(const ProblemArrays& arrays) {
  const std::vector<double> along_x{1, 0, 0};
  const Cotangent cotangent{.velocity = along_x};
  return Differentiate(Checked(arrays), kTight, {&cotangent, 1}).gradients[0];
}

// The estimates of the rule kLoadPath are constants, as given ones are.
TEST(DifferentiateTest, GradientsByLoadPathsAreThoseOfGivenEstimates) {
  ProblemArrays arrays = RandomBodiesInContact(3, 10, 30);
  arrays.regularization.rule = DelassusRule::kLoadPath;
  arrays.bodies.initial_velocity.assign(60, 0.0);
  const ContactProblem problem = Checked(arrays);
  Random random(1);
  const RandomCotangent cotangent(problem, &random);
  ContactSolution solution;
  const Gradient gradient =
      Differentiated(problem, cotangent, {.hold_delassus = true}, &solution).gradients[0];
  arrays.regularization.rule = DelassusRule::kFull;
  arrays.body_contacts.law.delassus_estimate = solution.delassus_estimate;
  const Gradient expected = Differentiated(Checked(arrays), cotangent).gradients[0];
  EXPECT_TRUE(SameBits(gradient.problem.v_star, expected.problem.v_star));
  EXPECT_TRUE(SameBits(gradient.problem.jacobian, expected.problem.jacobian));
  EXPECT_TRUE(SameBits(gradient.problem.w, expected.problem.w));
  EXPECT_FALSE(CheckHeldDelassus(false, problem));
  EXPECT_TRUE(CheckHeldDelassus(true, problem));
  EXPECT_TRUE(CheckHeldDelassus(false, Checked(arrays)));
}

// v = v*: nothing but v* matters.
TEST(DifferentiateTest, AFlyingBlockFollowsItsFreeMotion) {
  const Gradient gradient = OfSpeed(Block(0.2, 1).arrays);
  EXPECT_NEAR(gradient.problem.v_star[0], 1, 1e-15);
  EXPECT_NEAR(gradient.applied_impulse[0], 1 / Block::kMass, 1e-15);
  EXPECT_EQ(gradient.problem.mu[0], 0);
  EXPECT_EQ(gradient.problem.sigma, 0);
  EXPECT_EQ(gradient.problem.time_step, 0);
}

// v_x = v*_x / (1 + 1 / (m R_t)): creep, in proportion to sigma.
TEST(DifferentiateTest, AStuckBlockCreepsWithSigma) {
  const Gradient gradient = OfSpeed(Block(0.02, -0.1).arrays);
  const double stiffness = 1 / (Block::kMass * Block::R_t());
  EXPECT_NEAR(gradient.problem.v_star[0], 1 / (1 + stiffness), 1e-15);
  const double dv_dR_t = 0.02 * stiffness / Block::R_t() / ((1 + stiffness) * (1 + stiffness));
  EXPECT_NEAR(gradient.problem.sigma, dv_dR_t * Block::w(), 1e-12);
  EXPECT_NEAR(gradient.problem.w[0], dv_dR_t * 1e-3, 1e-12);
  EXPECT_NEAR(gradient.problem.mu[0] + gradient.problem.mu_2[0], 0, 1e-18);
}

// gamma_n = (mu |v_x| - v_z) / S with S = R_n + mu^2 R_t, m (v - v*) = (-mu gamma_n, gamma_n).
TEST(DifferentiateTest, ASlidingBlockIsSlowedByFriction) {
  const double v_x = 2, v_z = -0.1, mu = Block::kMu, m = Block::kMass;
  const Gradient gradient = OfSpeed(Block(v_x, v_z).arrays);
  // gamma_n (S + (1 + mu^2) / m) = mu v*_x - v*_z
  const double S = Block::R_n() + mu * mu * Block::R_t();
  const double T = S + (1 + mu * mu) / m;
  const double gamma_n = (mu * v_x - v_z) / T;
  const double dgamma_dmu = v_x / T - gamma_n / T * 2 * mu * (Block::R_t() + 1 / m);
  EXPECT_NEAR(gradient.problem.v_star[0], 1 - mu / m * mu / T, 1e-14);
  EXPECT_NEAR(gradient.problem.v_star[2], mu / m / T, 1e-14);
  EXPECT_NEAR(gradient.problem.mu[0] + gradient.problem.mu_2[0], -(gamma_n + mu * dgamma_dmu) / m,
              1e-13);
}

// One factor on A, k and 1/w leaves v, and so does one on all forces of rows and lengths of
// impulses: the gradient of a loss of v along that direction is 0.
TEST(DifferentiateTest, LossesOfVelocityDoNotChangeWithTheUnitOfMass) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const ProblemArrays arrays = RandomConstraintsOfEveryKind(seed);
    const ContactProblem problem = Checked(arrays);
    Random random(seed);
    RandomCotangent cotangent(problem, &random);
    for (auto* zero : {&cotangent.impulse, &cotangent.row_impulse, &cotangent.angular}) {
      std::ranges::fill(*zero, 0.0);
    }
    cotangent.cost = 0;
    const ProblemDifferential g = Differentiated(problem, cotangent).gradients[0].problem;
    Product sum;
    sum.Add(problem.dynamics_matrix(), g.dynamics_matrix);
    for (int i = 0; i < problem.num_contacts(); ++i) {
      if (std::isfinite(problem.stiffness()[i])) sum.Add(problem.stiffness()[i], g.stiffness[i]);
      sum.Add(-problem.given_R_t()[i], g.R_t[i]);
      sum.Add(-problem.given_R_n()[i], g.R_n[i]);
      if (problem.given_w()[i] != 0) sum.Add(-problem.given_w()[i], g.w[i]);
      const int extra = problem.contact_extra()[i];
      if (extra < 0) continue;
      if (IsHuntCrossley(problem.contact_kind()[i])) {
        const HuntCrossleyParameters& law = problem.hunt_crossley()[extra];
        sum.Add(law.elastic_force, g.hunt_crossley[extra].elastic_force);
        sum.Add(law.lagged_normal_impulse, g.hunt_crossley[extra].lagged_normal_impulse);
      } else {
        sum.Add(problem.general_friction()[extra].adhesion, g.adhesion[i]);
      }
    }
    for (int i = 0; i < problem.num_rows(); ++i) {
      const RowParameters& row = problem.rows()[i];
      const RowParameters& row_bar = g.rows[i];
      if (std::isfinite(row.stiffness)) sum.Add(row.stiffness, row_bar.stiffness);
      if (std::isfinite(row.force_lower)) sum.Add(row.force_lower, row_bar.force_lower);
      if (std::isfinite(row.force_upper)) sum.Add(row.force_upper, row_bar.force_upper);
      sum.Add(row.force_offset, row_bar.force_offset);
      sum.Add(-row.given_R, row_bar.given_R);
      sum.Add(-row.given_w, row_bar.given_w);
    }
    EXPECT_NEAR(static_cast<double>(sum.value), 0, 1e-11 * static_cast<double>(sum.size)) << seed;
  }
}

// A block pushed exactly to the friction limit slides under more and sticks under less. Either is
// right at the limit itself.
TEST(DifferentiateTest, AtAKinkTheGradientIsOneOfTheOneSidedDerivatives) {
  // |y_t| = mu y_n: v_x / R_t = -mu v_z / R_n with m (v - v*) = gamma.
  const double v_z = -0.1, m = Block::kMass;
  const double gamma_n = -v_z / (Block::R_n() + 1 / m);
  const double v_x = Block::kMu * gamma_n * (Block::R_t() + 1 / m);
  const double at = OfSpeed(Block(v_x, v_z).arrays).problem.v_star[0];
  const double below = OfSpeed(Block(v_x * (1 - 1e-9), v_z).arrays).problem.v_star[0];
  const double above = OfSpeed(Block(v_x * (1 + 1e-9), v_z).arrays).problem.v_star[0];
  EXPECT_GT(above - below, 0.1);
  EXPECT_LT(std::min(std::abs(at - below), std::abs(at - above)), 1e-7);
  const Cotangent none;
  const Derivatives margin = Differentiate(Checked(Block(v_x, v_z).arrays), kTight, {&none, 1});
  EXPECT_LT(margin.kink_margin[0], 1e-10);
}

void ExpectSameBits(const Gradient& a, const Gradient& b) {
  EXPECT_TRUE(SameBits(a.applied_impulse, b.applied_impulse));
  ProblemDifferential x = a.problem, y = b.problem;
  int different = 0;
  ForEachPair(x, y, [&](double p, double q) { different += p != q; });
  EXPECT_EQ(different, 0);
}

TEST(DifferentiateTest, BitsDoNotDependOnThreads) {
  const ProblemArrays pile = HeapsBeforeAPile(5, 150);
  for (const ProblemArrays& arrays : {RandomConstraintsOfEveryKind(3), pile}) {
    const ContactProblem problem = Checked(arrays);
    Random random(1);
    const RandomCotangent cotangent(problem, &random);
    const Cotangent view = cotangent.View();
    const ProblemDifferential direction = RandomDirection(problem, &random);
    ContactSolution of_one;
    const Derivatives one =
        Differentiate(problem, kTight, {&view, 1}, {&direction, 1}, {}, &of_one);
    for (const int threads : {2, 4}) {
      TaskArena arena(threads, Sharing::kAlways);
      Solver solver(&arena);
      ContactSolution solution;
      Derivatives many;
      ASSERT_TRUE(solver.Differentiate(problem, kTight, {&view, 1}, {&direction, 1}, {},
                                       StopToken(), &solution, &many));
      test::ExpectSameBits(of_one, solution);
      ExpectSameBits(one.gradients[0], many.gradients[0]);
      EXPECT_TRUE(SameBits(one.tangents[0].velocity, many.tangents[0].velocity));
      EXPECT_TRUE(SameBits(one.tangents[0].impulse, many.tangents[0].impulse));
      EXPECT_EQ(one.tangents[0].cost, many.tangents[0].cost);
      EXPECT_EQ(one.kink_margin, many.kink_margin);
    }
  }
}

TEST(DifferentiateTest, IslandsChangeGradientsByRoundingAlone) {
  const ContactProblem problem = Checked(Heaps(1, 6, 4));
  Random random(1);
  const RandomCotangent cotangent(problem, &random);
  const Cotangent view = cotangent.View();
  SolverOptions whole = kTight;
  whole.islands = false;
  const Derivatives apart = Differentiate(problem, kTight, {&view, 1});
  const Derivatives together = Differentiate(problem, whole, {&view, 1});
  double largest = 0;
  for (const double x : apart.gradients[0].applied_impulse)
    largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < apart.gradients[0].applied_impulse.size(); ++i) {
    EXPECT_NEAR(apart.gradients[0].applied_impulse[i], together.gradients[0].applied_impulse[i],
                1e-12 * largest);
  }
}

TEST(DifferentiateTest, ALossOfOneIslandHasNoGradientInTheOthers) {
  const ContactProblem problem = Checked(Heaps(1, 4, 2));
  std::vector<double> velocity(problem.num_velocities());
  velocity[6 * 2] = 1;  // the lowest box of the second heap
  const Cotangent cotangent{.velocity = velocity};
  ContactSolution solved = Solve(problem, kTight), solution;
  const Derivatives derivatives =
      Differentiate(problem, kTight, {&cotangent, 1}, {}, {}, &solution);
  ASSERT_EQ(derivatives.adjoint_status.size(), 4u);
  for (const AdjointStatus status : derivatives.adjoint_status) {
    EXPECT_EQ(status, AdjointStatus::kDifferentiated);
  }
  const Gradient& gradient = derivatives.gradients[0];
  for (int tree = 0; tree < problem.num_trees(); ++tree) {
    const bool is_hit = solution.island_of_tree[tree] == 1;
    double size = 0;
    for (int64_t i = problem.matrix_start()[tree]; i < problem.matrix_start()[tree + 1]; ++i) {
      size += std::abs(gradient.problem.dynamics_matrix[i]);
    }
    for (int i = 0; i < 6; ++i) {
      size += std::abs(gradient.applied_impulse[6 * tree + i]);
      if (is_hit) continue;
      EXPECT_EQ(solution.velocity[6 * tree + i], solved.velocity[6 * tree + i]);
    }
    EXPECT_EQ(size > 0, is_hit) << tree;
  }
  for (int contact = 0; contact < problem.num_contacts(); ++contact) {
    if (solution.island_of_tree[problem.trees_of_contact(contact).front()] == 1) continue;
    EXPECT_EQ(gradient.problem.w[contact], 0);
    EXPECT_EQ(gradient.problem.v_hat[3 * contact + 2], 0);
  }
}

// The gradient with respect to an impulse on a body that touches nothing is v_bar / m.
TEST(DifferentiateTest, ATreeWithoutConstraintsFollowsItsFreeMotion) {
  ProblemArrays arrays = Block(0.02, -0.1).arrays;
  arrays.AddTree(Eigen::Vector2d(2, 4).asDiagonal().toDenseMatrix(), Eigen::Vector2d(1, 1));
  const std::vector<double> velocity{0, 0, 0, 3, 5};
  const Cotangent cotangent{.velocity = velocity};
  const ContactProblem problem = Checked(arrays);
  ProblemDifferential direction;
  direction.Reset(problem);
  direction.v_star[4] = 7;
  const Derivatives derivatives = Differentiate(problem, kTight, {&cotangent, 1}, {&direction, 1});
  EXPECT_EQ(derivatives.gradients[0].problem.v_star[4], 5);
  EXPECT_EQ(derivatives.gradients[0].applied_impulse[3], 1.5);
  EXPECT_EQ(derivatives.gradients[0].applied_impulse[4], 1.25);
  EXPECT_EQ(derivatives.tangents[0].velocity[4], 7);
}

TEST(DifferentiateTest, ThePolishedVelocityIsTheSolutionToRoundOff) {
  const ContactProblem problem = Checked(RandomBodiesInContact(2, 30, 90));
  Random random(1);
  const RandomCotangent cotangent(problem, &random);
  ContactSolution solution;
  Differentiated(problem, cotangent, {}, &solution);
  const ContactSolution solved = Solve(problem, kTight);
  for (size_t i = 0; i < solution.islands.size(); ++i) {
    EXPECT_LE(solution.islands[i].momentum_residual, 1e-13);
    EXPECT_EQ(solution.islands[i].iterations, solved.islands[i].iterations);
    EXPECT_EQ(solution.islands[i].factorizations, solved.islands[i].factorizations + 1);
  }
}

TEST(DifferentiateTest, WhatIsNotSolvedIsInaccurateAndAPassedDeadlineLeavesZeros) {
  const ContactProblem problem = Checked(HeapsBeforeAPile(1, 60));
  Random random(1);
  const RandomCotangent cotangent(problem, &random);
  const Cotangent view = cotangent.View();
  SolverOptions none = kTight;
  none.max_iterations = 0;
  const Derivatives unsolved = Differentiate(problem, none, {&view, 1});
  EXPECT_GT(std::ranges::count(unsolved.adjoint_status, AdjointStatus::kInaccurate), 0);
  Solver solver(nullptr);
  ContactSolution solution;
  Derivatives late;
  const StopToken passed(nullptr, StopToken::Clock::now());
  ASSERT_TRUE(solver.Differentiate(problem, kTight, {&view, 1}, {}, {}, passed, &solution, &late));
  for (const AdjointStatus status : late.adjoint_status) {
    EXPECT_EQ(status, AdjointStatus::kDeadline);
  }
  for (const double x : late.gradients[0].applied_impulse) EXPECT_EQ(x, 0);
  for (const double x : late.gradients[0].problem.jacobian) EXPECT_EQ(x, 0);
}

// What overflows is 0 and said so, in the island alone in which it happens.
TEST(DifferentiateTest, GradientsBeyondTheRangeOfDoublesAreZero) {
  const ContactProblem problem = Checked(Heaps(1, 2, 1));
  std::vector<double> impulse(3 * problem.num_contacts());
  impulse[0] = std::numeric_limits<double>::max();
  impulse[12] = 1;
  const Cotangent cotangent{.impulse = impulse};
  const Derivatives derivatives = Differentiate(problem, kTight, {&cotangent, 1});
  EXPECT_EQ(derivatives.adjoint_status[0], AdjointStatus::kNumericalFailure);
  EXPECT_EQ(derivatives.adjoint_status[1], AdjointStatus::kDifferentiated);
  for (const double x : derivatives.gradients[0].problem.dynamics_matrix) {
    EXPECT_TRUE(std::isfinite(x));
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(derivatives.gradients[0].applied_impulse[i], 0);
}

}  // namespace
}  // namespace sap::test
