#include "solver/solve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/answer_errors.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

// A mixed scene with a moving surface under every contact.
ProblemArrays Scene(uint64_t seed) {
  ProblemArrays arrays = RandomTreesInContact(seed, {.trees = 14, .contacts = 20});
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    arrays.contacts.law.surface_velocity.push_back(Uniform(&random, -0.3, 0.3));
  }
  return arrays;
}

TEST(SolveTest, ContactVelocitiesAndImpulsesAreThoseOfTheVelocities) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const ProblemArrays arrays = Scene(seed);
    const PrimalProblem primal(arrays);
    const ContactSolution solution = Solve(Checked(arrays));
    const VectorL v = ToVectorL(solution.velocity);
    const VectorL v_c = primal.ContactVelocity(v);
    const VectorL gamma = primal.Impulse(v);
    for (int i = 0; i < v_c.size(); ++i) {
      EXPECT_NEAR(solution.contact_velocity[i], static_cast<double>(v_c[i]), 1e-13);
      // An error of a velocity is an error of the impulse divided by R.
      const double tolerance = 1e-14 / static_cast<double>(primal.R()[i]) + 1e-13;
      EXPECT_NEAR(solution.impulse[i], static_cast<double>(gamma[i]), tolerance);
    }
  }
}

TEST(SolveTest, ReportsOfIslandsAddUpToTheProblem) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const ProblemArrays arrays = Scene(seed);
    const ContactProblem problem = Checked(arrays);
    const PrimalProblem primal(arrays);
    const ContactSolution solution = Solve(problem);
    std::vector<int> dofs(solution.islands.size(), 0), contacts(solution.islands.size(), 0);
    for (int tree = 0; tree < problem.num_trees(); ++tree) {
      const int island = solution.island_of_tree[tree];
      if (island >= 0) dofs[island] += problem.dofs()[tree];
    }
    for (int contact = 0; contact < problem.num_contacts(); ++contact) {
      ++contacts[solution.island_of_tree[problem.trees_of_contact(contact).front()]];
    }
    double cost = 0;
    for (size_t island = 0; island < solution.islands.size(); ++island) {
      const IslandReport& report = solution.islands[island];
      EXPECT_EQ(report.dofs, dofs[island]);
      EXPECT_EQ(report.contacts, contacts[island]);
      EXPECT_GE(report.solve_time_s, 0);
      // One of single precision and one of double at most, besides those of sweeps of one tree.
      EXPECT_LE(report.factorizations, 2 * report.iterations);
      EXPECT_EQ(report.factorizations == 0, report.iterations == 0);
      cost += report.cost;
    }
    EXPECT_EQ(solution.cost, cost);
    const auto expected = static_cast<double>(primal.Cost(ToVectorL(solution.velocity)));
    EXPECT_NEAR(cost, expected, 1e-13 * expected);
  }
}

TEST(SolveTest, TreesWithoutContactKeepTheirFreeMotion) {
  const ProblemArrays arrays = RandomTreesInContact(5, {.trees = 30, .contacts = 8});
  const ContactProblem problem = Checked(arrays);
  const ContactSolution solution = Solve(problem);
  int free_trees = 0;
  for (int tree = 0; tree < problem.num_trees(); ++tree) {
    if (solution.island_of_tree[tree] >= 0) continue;
    ++free_trees;
    for (int i = problem.velocity_start()[tree]; i < problem.velocity_start()[tree + 1]; ++i) {
      EXPECT_EQ(solution.velocity[i], problem.v_star()[i]);
    }
  }
  EXPECT_GT(free_trees, 0);
}

TEST(SolveTest, BodiesAndHandMadeTreesOfThemAgree) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const ProblemArrays arrays = RandomBodiesInContact(seed, 10, 30);
    const SolverOptions options{.relative_tolerance = 1e-13};
    const ContactSolution bodies = Solve(Checked(arrays), options);
    const ContactSolution trees = Solve(Checked(WithBodiesAsTrees(arrays)), options);
    EXPECT_EQ(bodies.island_of_tree, trees.island_of_tree);
    for (size_t i = 0; i < bodies.velocity.size(); ++i) {
      EXPECT_NEAR(bodies.velocity[i], trees.velocity[i], 1e-12);
    }
  }
}

TEST(SolveTest, IterationsGoOnFromTheIterateTheyWereCutAt) {
  const ContactProblem problem = Checked(RandomBodiesInContact(1, 10, 40));
  SolverOptions options{.max_iterations = 2, .newton = NewtonMethod::kPlain};
  const ContactSolution cut = Solve(problem, options);
  ContactProblem rest = problem;
  rest.SetGuess(cut.velocity);
  options.max_iterations = 500;
  const ContactSolution resumed = Solve(rest, options);
  const ContactSolution whole = Solve(problem, options);
  EXPECT_EQ(resumed.velocity, whole.velocity);
  for (size_t i = 0; i < whole.islands.size(); ++i) {
    EXPECT_EQ(resumed.islands[i].iterations + cut.islands[i].iterations,
              whole.islands[i].iterations);
  }
}

TEST(SolveTest, TighterToleranceIsMet) {
  const ContactProblem problem = Checked(RandomBodiesInContact(2, 15, 50));
  for (const double tolerance : {1e-2, 1e-5, 1e-8, 1e-11}) {
    const ContactSolution solution = Solve(problem, {.relative_tolerance = tolerance});
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.status, SolveStatus::kConverged);
      EXPECT_LE(report.momentum_residual, tolerance * (1 + 1e-9) + 1e-13);
    }
  }
}

// One value of one array of the first heap, taken to an extreme.
struct Extreme {
  const char* name;
  double usual;
  std::function<void(ProblemArrays*, double)> set;
  bool negative_is_fine;
};

class ExtremeTest : public ::testing::TestWithParam<Extreme> {
 protected:
  static constexpr int kHeaps = 3;
  static std::vector<double> Values() {
    std::vector<double> values{5e-324, 1e-320, 1e-308, 1e-200, 1e-100, 1e100, 1e154, 1e200, 1e308};
    if (GetParam().negative_is_fine) {
      for (const double value : {-1e-308, -1e100, -1e154, -1e308}) values.push_back(value);
    }
    return values;
  }
};

bool AllFinite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

TEST_P(ExtremeTest, IsAnsweredOrReportedAndTouchesNoOtherIsland) {
  ProblemArrays good = Heaps(1, kHeaps, 3);
  GetParam().set(&good, GetParam().usual);
  for (const double value : Values()) {
    ProblemArrays arrays = good;
    GetParam().set(&arrays, value);
    const auto problem = ContactProblem::Make(arrays.View());
    if (!problem)
      continue;  // refused by validation, as by an inertia that is not positive definite
    for (const NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kAccelerated}) {
      SCOPED_TRACE(std::string(GetParam().name) + " " + std::to_string(value));
      const SolverOptions options{.newton = newton};
      const ContactSolution solution = Solve(*problem, options);
      const ContactSolution expected = Solve(Checked(good), options);
      ASSERT_EQ(solution.islands.size(), static_cast<size_t>(kHeaps));
      EXPECT_TRUE(AllFinite(solution.velocity));
      const IslandReport& report = solution.islands[0];
      EXPECT_NE(report.status, SolveStatus::kDeadline);
      EXPECT_NE(report.status, SolveStatus::kCancelled);
      EXPECT_FALSE(std::isnan(report.optimality_gap_bound));
      EXPECT_FALSE(std::isnan(report.momentum_residual));
      EXPECT_GE(report.optimality_gap_bound, 0);
      // What claims to have converged has numbers to show for it.
      if (report.status == SolveStatus::kConverged) {
        EXPECT_TRUE(AllFinite(solution.impulse));
        EXPECT_TRUE(std::isfinite(report.cost));
      }
      for (size_t i = 18; i < solution.velocity.size(); ++i) {
        EXPECT_EQ(solution.velocity[i], expected.velocity[i]);
      }
      for (size_t i = 3 * 12; i < solution.impulse.size(); ++i) {
        EXPECT_EQ(solution.impulse[i], expected.impulse[i]);
      }
      for (int island = 1; island < kHeaps; ++island) {
        EXPECT_EQ(solution.islands[island].status, expected.islands[island].status);
        EXPECT_EQ(solution.islands[island].iterations, expected.islands[island].iterations);
      }
    }
  }
}

// Sets the first value of an array of the law; an optional one gets a usual value for the others.
void SetLaw(std::vector<double> LawArrays::*array, double usual, ProblemArrays* arrays,
            double value) {
  std::vector<double>& values = arrays->body_contacts.law.*array;
  if (values.empty()) values.assign(arrays->body_contacts.body_a.size(), usual);
  values[0] = value;
}

INSTANTIATE_TEST_SUITE_P(
    EveryField, ExtremeTest,
    ::testing::Values(
        Extreme{"mass", 1, [](auto* a, double x) { a->bodies.mass[0] = x; }, false},
        Extreme{"inertia", 0.2,
                [](auto* a, double x) {
                  for (int i = 0; i < 3; ++i) a->bodies.inertia[i] = x;
                },
                false},
        Extreme{"free_motion_velocity", -0.1,
                [](auto* a, double x) { a->bodies.free_motion_velocity[2] = x; }, true},
        Extreme{"guess_velocity", -0.1,
                [](auto* a, double x) {
                  a->bodies.guess_velocity = a->bodies.free_motion_velocity;
                  a->bodies.guess_velocity[2] = x;
                },
                true},
        Extreme{"center_of_mass", 0, [](auto* a, double x) { a->bodies.center_of_mass[0] = x; },
                true},
        Extreme{"signed_distance", 0,
                [](auto* a, double x) { SetLaw(&LawArrays::signed_distance, 0, a, x); }, true},
        Extreme{"stiffness", 1e5,
                [](auto* a, double x) { SetLaw(&LawArrays::stiffness, 1e5, a, x); }, false},
        Extreme{"relaxation_time", 0.01,
                [](auto* a, double x) { SetLaw(&LawArrays::relaxation_time, 0.01, a, x); }, false},
        Extreme{"friction", 0.5, [](auto* a, double x) { SetLaw(&LawArrays::friction, 0.5, a, x); },
                false},
        Extreme{"regularization_t", 1e-3,
                [](auto* a, double x) { SetLaw(&LawArrays::regularization_t, 1e-3, a, x); }, false},
        Extreme{"regularization_n", 1e-2,
                [](auto* a, double x) { SetLaw(&LawArrays::regularization_n, 1e-2, a, x); }, false},
        Extreme{"delassus_estimate", 0.5,
                [](auto* a, double x) { SetLaw(&LawArrays::delassus_estimate, 0.5, a, x); }, false},
        Extreme{"surface_velocity", 0,
                [](auto* a, double x) {
                  a->body_contacts.law.surface_velocity.assign(a->body_contacts.point.size(), 0);
                  a->body_contacts.law.surface_velocity[0] = x;
                },
                true}),
    [](const ::testing::TestParamInfo<Extreme>& info) { return std::string(info.param.name); });

// The whole problem at the ends of the range: dt, sigma, beta have no island of their own.
TEST(SolveTest, ExtremeParametersOfTheWholeProblemAreAnsweredOrReported) {
  for (const double value : {5e-324, 1e-308, 1e-100, 1e100, 1e308}) {
    for (int which = 0; which < 3; ++which) {
      ProblemArrays arrays = Heaps(1, 1, 3);
      if (which == 0) arrays.time_step = value;
      if (which == 1) arrays.regularization.sigma = value;
      if (which == 2) arrays.regularization.beta = value;
      const ContactSolution solution = Solve(Checked(arrays));
      EXPECT_TRUE(AllFinite(solution.velocity)) << which << " " << value;
      EXPECT_FALSE(std::isnan(solution.islands[0].optimality_gap_bound)) << which << " " << value;
    }
  }
}

// No value has to be extreme for the sum to be: velocities of 1e160 have no finite energy.
TEST(SolveTest, EnergyBeyondTheRangeOfDoublesIsANumericalFailure) {
  ProblemArrays arrays = Heaps(1, 1, 2);
  for (double& v : arrays.bodies.free_motion_velocity) v = 1e160;
  arrays.bodies.guess_velocity.assign(arrays.bodies.free_motion_velocity.size(), 0.5);
  const ContactSolution solution = Solve(Checked(arrays));
  EXPECT_EQ(solution.islands[0].status, SolveStatus::kNumericalFailure);
  EXPECT_EQ(solution.islands[0].optimality_gap_bound, std::numeric_limits<double>::infinity());
  EXPECT_EQ(solution.velocity, arrays.bodies.guess_velocity);
}

}  // namespace
}  // namespace sap::test
