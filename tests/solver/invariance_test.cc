// Invariances of answers: islands, order, scale, form, threads, and what was solved before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "solver/solve.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"
#include "tests/support/scaled_problem.h"

namespace sap::test {
namespace {

ContactSolution SolveWith(const ContactProblem& problem, TaskArena* arena,
                          const SolverOptions& options = {}) {
  Solver solver(arena);
  ContactSolution solution;
  solver.Solve(problem, options, StopToken(), &solution);
  return solution;
}

double LargestDifference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

double LargestEntry(const std::vector<double>& a) {
  double largest = 0;
  for (double x : a) largest = std::max(largest, std::abs(x));
  return largest;
}

class InvarianceTest : public testing::TestWithParam<std::string> {};

TEST_P(InvarianceTest, SolutionByIslandsEqualsSolutionOfTheWhole) {
  const ContactProblem problem = Checked(LoadGolden(GetParam()).arrays);
  SolverOptions options;
  options.relative_tolerance = 1e-10;
  const ContactSolution islands = SolveWith(problem, nullptr, options);
  options.islands = false;
  const ContactSolution whole = SolveWith(problem, nullptr, options);
  EXPECT_LE(whole.islands.size(), 1u);
  EXPECT_LE(LargestDifference(islands.velocity, whole.velocity),
            1e-6 * LargestEntry(whole.velocity));
}

TEST_P(InvarianceTest, BitsDoNotDependOnThreads) {
  const ContactProblem problem = Checked(LoadGolden(GetParam()).arrays);
  const ContactSolution alone = SolveWith(problem, nullptr);
  for (int threads : {1, 2, 3, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    ExpectSameBits(SolveWith(problem, &arena), alone);
  }
}

// The problem with the velocities of a moment ago, from which gravity has led to v*.
ProblemArrays WithLoads(ProblemArrays arrays) {
  arrays.regularization.rule = DelassusRule::kLoadPath;
  arrays.trees.initial_velocity = arrays.trees.free_motion_velocity;
  arrays.bodies.initial_velocity = arrays.bodies.free_motion_velocity;
  for (size_t i = 2; i < arrays.bodies.initial_velocity.size(); i += 6) {
    arrays.bodies.initial_velocity[i] += 0.1;
  }
  for (double& velocity : arrays.trees.initial_velocity) velocity += 0.1;
  return arrays;
}

TEST_P(InvarianceTest, BitsByLoadPathsDoNotDependOnThreadsOrUnits) {
  const ProblemArrays arrays = WithLoads(LoadGolden(GetParam()).arrays);
  const ContactSolution alone = SolveWith(Checked(arrays), nullptr);
  for (int threads : {2, 8}) {
    TaskArena arena(threads, Sharing::kAlways);
    ExpectSameBits(SolveWith(Checked(arrays), &arena), alone);
  }
  const ContactSolution scaled = SolveWith(Checked(Scaled(arrays, 1024)), nullptr);
  EXPECT_TRUE(SameBits(scaled.velocity, alone.velocity));
  for (size_t i = 0; i < alone.delassus_estimate.size(); ++i) {
    EXPECT_EQ(1024 * scaled.delassus_estimate[i], alone.delassus_estimate[i]);
  }
}

// One island that is shared out among the threads, and hundreds that are handed out.
TEST(InvarianceOfLargeProblemsTest, BitsDoNotDependOnThreads) {
  for (const char* name : {"pile_1000_t12p00", "heaps_300x3_t1p50"}) {
    const ProblemArrays arrays = LoadGolden(name).arrays;
    for (const ContactProblem& problem : {Checked(arrays), Checked(WithLoads(arrays))}) {
      const ContactSolution alone = SolveWith(problem, nullptr);
      for (int threads : {2, 3, 8}) {
        TaskArena arena(threads, Sharing::kAlways);
        ExpectSameBits(SolveWith(problem, &arena), alone);
      }
    }
  }
}

TEST_P(InvarianceTest, BitsDoNotDependOnWhatWasSolvedBefore) {
  const ContactProblem problem = Checked(LoadGolden(GetParam()).arrays);
  const ContactProblem other = Checked(RandomBodiesInContact(3, 60, 150));
  Solver solver(nullptr);
  ContactSolution solution;
  solver.Solve(problem, {}, StopToken(), &solution);
  const ContactSolution first = solution;
  solver.Solve(other, {}, StopToken(), &solution);
  solver.Solve(problem, {}, StopToken(), &solution);
  ExpectSameBits(solution, first);
}

TEST_P(InvarianceTest, BitsDoNotDependOnWhereTheArraysLie) {
  const ProblemArrays arrays = LoadGolden(GetParam()).arrays;
  const ContactSolution first = SolveWith(Checked(arrays), nullptr);
  for (size_t shift = 1; shift < 4; ++shift) {
    // A copy that begins shift doubles off the alignment of the allocator.
    std::vector<double> padded(shift + arrays.contacts.jacobian.size());
    std::copy(arrays.contacts.jacobian.begin(), arrays.contacts.jacobian.end(),
              padded.begin() + shift);
    ContactProblemView view = arrays.View();
    view.contacts.jacobian = std::span<const double>(padded).subspan(shift);
    ExpectSameBits(SolveWith(*ContactProblem::Make(view), nullptr), first);
  }
}

TEST_P(InvarianceTest, MassesTimesAPowerOfTwoGiveTheSameBits) {
  const ProblemArrays arrays = LoadGolden(GetParam()).arrays;
  for (NewtonMethod newton : {NewtonMethod::kPlain, NewtonMethod::kAccelerated}) {
    const SolverOptions options{.newton = newton};
    const ContactSolution first = SolveWith(Checked(arrays), nullptr, options);
    for (int exponent : {20, -20, 1, -7}) {
      const ContactSolution scaled =
          SolveWith(Checked(Scaled(arrays, std::ldexp(1.0, exponent))), nullptr, options);
      EXPECT_TRUE(SameBits(scaled.velocity, first.velocity)) << exponent;
      EXPECT_EQ(Iterations(scaled), Iterations(first)) << exponent;
    }
  }
}

TEST_P(InvarianceTest, MassesTimesAMillionTakeTheSameIterationsWithinOne) {
  const ProblemArrays arrays = LoadGolden(GetParam()).arrays;
  const std::vector<int> first = Iterations(SolveWith(Checked(arrays), nullptr));
  for (double factor : {1e6, 1e-6}) {
    const std::vector<int> scaled = Iterations(SolveWith(Checked(Scaled(arrays, factor)), nullptr));
    ASSERT_EQ(scaled.size(), first.size());
    for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(scaled[i], first[i], 1) << factor;
  }
}

// The names of these problems are in tests/data, which the larger set falls back on.
INSTANTIATE_TEST_SUITE_P(Golden, InvarianceTest,
                         testing::Values("adroit_ball_t0p30", "clutter_bin_8_t2p00",
                                         "clutter_bin_40_t1p00", "drake_bin_arm_12_t0p16",
                                         "drake_plane_4_t1p00", "dog_boxes_t1p40"),
                         [](const auto& test) { return test.param; });

TEST(InvarianceOfRandomProblemsTest, ShuffledTreesAndContactsGiveTheSameAnswer) {
  const ProblemArrays arrays = RandomTreesInContact(11, {.trees = 20, .contacts = 50});
  const std::vector<int> starts = VelocityStarts(arrays);
  const std::vector<int64_t> jacobians = JacobianStarts(arrays);
  Random random(5);
  std::vector<int> trees(arrays.num_trees());  // new number -> old number
  std::iota(trees.begin(), trees.end(), 0);
  std::shuffle(trees.begin(), trees.end(), random);
  std::vector<int> new_number(trees.size());
  for (size_t i = 0; i < trees.size(); ++i) new_number[trees[i]] = static_cast<int>(i);
  std::vector<int> contacts(arrays.contacts.tree_a.size());
  std::iota(contacts.begin(), contacts.end(), 0);
  std::shuffle(contacts.begin(), contacts.end(), random);

  ProblemArrays shuffled;
  shuffled.time_step = arrays.time_step;
  shuffled.regularization = arrays.regularization;
  std::vector<int64_t> matrix_start(1, 0);
  for (uint32_t n : arrays.trees.dofs) matrix_start.push_back(matrix_start.back() + n * n);
  for (int old : trees) {
    const int n = static_cast<int>(arrays.trees.dofs[old]);
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    shuffled.AddTree(
        Eigen::Map<const RowMajor>(arrays.trees.dynamics_matrix.data() + matrix_start[old], n, n),
        Eigen::Map<const Eigen::VectorXd>(arrays.trees.free_motion_velocity.data() + starts[old],
                                          n));
  }
  for (int c : contacts) {
    const int a = arrays.contacts.tree_a[c];
    const int b = arrays.contacts.tree_b[c];
    const int n_a = static_cast<int>(arrays.trees.dofs[a]);
    const double* J = arrays.contacts.jacobian.data() + jacobians[c];
    const ProblemArrays::Jacobian J_a = Eigen::Map<const ProblemArrays::Jacobian>(J, 3, n_a);
    const LawArrays& law = arrays.contacts.law;
    const Material material{law.signed_distance[c], law.stiffness[c], law.relaxation_time[c],
                            law.friction[c]};
    if (b < 0) {
      shuffled.AddContact(new_number[a], J_a, material);
      continue;
    }
    const ProblemArrays::Jacobian J_b = Eigen::Map<const ProblemArrays::Jacobian>(
        J + 3 * n_a, 3, static_cast<int>(arrays.trees.dofs[b]));
    // First and second tree change places as well.
    shuffled.AddContact(new_number[b], J_b, new_number[a], J_a, material);
  }

  const SolverOptions options{.relative_tolerance = 1e-12};
  const ContactSolution first = SolveWith(Checked(arrays), nullptr, options);
  const ContactSolution second = SolveWith(Checked(shuffled), nullptr, options);
  const std::vector<int> new_starts = VelocityStarts(shuffled);
  const double scale = LargestEntry(first.velocity);
  for (size_t tree = 0; tree < trees.size(); ++tree) {
    for (uint32_t i = 0; i < arrays.trees.dofs[tree]; ++i) {
      EXPECT_NEAR(first.velocity[starts[tree] + i],
                  second.velocity[new_starts[new_number[tree]] + i], 1e-9 * scale);
    }
  }
}

TEST(InvarianceOfRandomProblemsTest, BodiesAndTheirTreesGiveTheSameAnswer) {
  const ProblemArrays bodies = RandomBodiesInContact(7, 12, 40);
  const ContactProblem as_bodies = Checked(bodies);
  ProblemArrays trees;
  trees.time_step = bodies.time_step;
  trees.regularization = bodies.regularization;
  trees.trees.dofs.assign(bodies.bodies.mass.size(), 6);
  const auto copy = [](auto from) { return std::vector<double>(from.begin(), from.end()); };
  trees.trees.dynamics_matrix = copy(as_bodies.dynamics_matrix());
  trees.trees.free_motion_velocity = copy(as_bodies.v_star());
  trees.trees.guess_velocity = copy(as_bodies.v_guess());
  trees.contacts.tree_a = bodies.body_contacts.body_a;
  trees.contacts.tree_b = bodies.body_contacts.body_b;
  trees.contacts.jacobian = copy(as_bodies.jacobian());
  trees.contacts.law = bodies.body_contacts.law;
  trees.contacts.law.surface_velocity = copy(as_bodies.surface_velocity());
  const ContactSolution first = SolveWith(as_bodies, nullptr);
  const ContactSolution second = SolveWith(Checked(trees), nullptr);
  EXPECT_LE(LargestDifference(first.velocity, second.velocity), 1e-12);
  EXPECT_LE(LargestDifference(first.impulse, second.impulse), 1e-12);
}

TEST(InvarianceOfRandomProblemsTest, OneIslandsFailureLeavesTheOthersBits) {
  ProblemArrays arrays = Heaps(3, 4, 3);
  const ContactSolution good = SolveWith(Checked(arrays), nullptr);
  ASSERT_EQ(good.islands.size(), 4u);
  arrays.body_contacts.law.signed_distance[0] = 1e308;  // over the time step no longer a double
  TaskArena arena(2, Sharing::kAlways);
  const ContactSolution bad = SolveWith(Checked(arrays), &arena);
  ASSERT_EQ(bad.islands.size(), 4u);
  const int failed = bad.island_of_tree[arrays.body_contacts.body_a[0]];
  EXPECT_EQ(bad.islands[failed].status, SolveStatus::kNumericalFailure);
  for (size_t i = 0; i < good.velocity.size(); ++i) {
    EXPECT_TRUE(std::isfinite(bad.velocity[i]));
    if (bad.island_of_tree[i / 6] != failed) {
      EXPECT_EQ(bad.velocity[i], good.velocity[i]) << i;
    }
  }
  for (int island = 0; island < 4; ++island) {
    if (island != failed) {
      EXPECT_EQ(bad.islands[island].status, SolveStatus::kConverged);
    }
  }
}

}  // namespace
}  // namespace sap::test
