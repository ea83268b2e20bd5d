#include "solver/newton/rest_certificate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "solver/solve.h"
#include "tests/support/answer_errors.h"
#include "tests/support/constrained_problem.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_constraints.h"
#include "tests/support/same_bits.h"
#include "tests/support/tree_parts.h"

namespace sap::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHorizon = 0.25;

SolverOptions Asking(double horizon = kHorizon) {
  SolverOptions options;
  options.rest = {.horizon = horizon};
  return options;
}

// A problem as dense matrices, with v_0.
class RestTwin {
 public:
  explicit RestTwin(const ProblemArrays& arrays)
      : problem_(arrays),
        time_step_(arrays.time_step),
        masses_(arrays.bodies.mass),
        num_trees_(static_cast<int>(arrays.trees.dofs.size())) {
    for (const uint32_t n : arrays.trees.dofs)
      starts_.push_back(starts_.back() + static_cast<int>(n));
    for (size_t i = 0; i < masses_.size(); ++i) starts_.push_back(starts_.back() + 6);
    const int n = starts_.back();
    A_.resize(n, n);
    for (int i = 0; i < n; ++i) A_.col(i) = problem_.TimesA(VectorL::Unit(n, i));
    inverse_ = InverseOf(A_);
    std::vector<double> v_0 = arrays.trees.initial_velocity;
    v_0.insert(v_0.end(), arrays.bodies.initial_velocity.begin(),
               arrays.bodies.initial_velocity.end());
    v_0_ = ToVectorL(v_0);
  }

  // By island, the formula of rest_certificate.h at the velocity of the solution.
  std::vector<long double> Drifts(const ContactSolution& solution, long double horizon) const {
    const VectorL v = ToVectorL(solution.velocity);
    const VectorL change = A_ * (v - v_0_);
    const VectorL unbalanced = change - problem_.Gradient(v);
    std::vector<long double> drifts(solution.islands.size());
    for (size_t island = 0; island < drifts.size(); ++island) {
      const VectorL is_in = Mask(solution, static_cast<int>(island));
      const VectorL dv = is_in.cwiseProduct(v - v_0_);
      const VectorL r = is_in.cwiseProduct(unbalanced);
      const long double a = std::sqrt(r.dot(inverse_ * r)) / time_step_;
      const long double reach =
          horizon * std::sqrt(dv.dot(A_ * dv)) + horizon * (horizon + time_step_) / 2 * a;
      drifts[island] = Largest(solution, static_cast<int>(island), horizon * v, reach);
    }
    return drifts;
  }

  // By island, how far a displacement of all velocities moves a body or degree of freedom.
  std::vector<long double> Motions(const ContactSolution& solution, const VectorL& moved) const {
    std::vector<long double> motions(solution.islands.size());
    for (size_t island = 0; island < motions.size(); ++island) {
      motions[island] = Largest(solution, static_cast<int>(island), moved, 0);
    }
    return motions;
  }

  long double NormA(const VectorL& v) const { return std::sqrt(v.dot(A_ * v)); }
  const ConstrainedProblem& problem() const { return problem_; }
  const VectorL& v_0() const { return v_0_; }

 private:
  VectorL Mask(const ContactSolution& solution, int island) const {
    VectorL mask = VectorL::Zero(starts_.back());
    for (size_t tree = 0; tree + 1 < starts_.size(); ++tree) {
      if (solution.island_of_tree[tree] != island) continue;
      mask.segment(starts_[tree], starts_[tree + 1] - starts_[tree]).setOnes();
    }
    return mask;
  }

  long double Largest(const ContactSolution& solution, int island, const VectorL& moved,
                      long double reach) const {
    long double largest = 0;
    for (int tree = 0; tree + 1 < static_cast<int>(starts_.size()); ++tree) {
      if (solution.island_of_tree[tree] != island) continue;
      const int start = starts_[tree];
      if (tree >= num_trees_) {
        const VectorL d = moved.segment(start, 6);
        const long double energy = d.dot(A_.block(start, start, 6, 6) * d);
        const long double mass = masses_[tree - num_trees_];
        largest = std::max(largest, (std::sqrt(energy) + reach) / std::sqrt(mass));
        continue;
      }
      for (int j = start; j < starts_[tree + 1]; ++j) {
        largest = std::max(largest, std::abs(moved[j]) + reach * std::sqrt(inverse_(j, j)));
      }
    }
    return largest;
  }

  const ConstrainedProblem problem_;
  const long double time_step_;
  const std::vector<double> masses_;
  const int num_trees_;
  std::vector<int> starts_{0};
  MatrixL A_, inverse_;
  VectorL v_0_;
};

std::vector<double> RandomVelocities(Random* random, size_t count) {
  const Eigen::VectorXd v = UniformVector(random, static_cast<int>(count), -1, 1);
  return {v.begin(), v.end()};
}

void DrawInitialVelocity(uint64_t seed, ProblemArrays* arrays) {
  Random random(seed);
  arrays->trees.initial_velocity =
      RandomVelocities(&random, arrays->trees.free_motion_velocity.size());
  arrays->bodies.initial_velocity =
      RandomVelocities(&random, arrays->bodies.free_motion_velocity.size());
}

void ExpectDriftsOfTwin(const ProblemArrays& arrays, SolverOptions options) {
  const RestTwin twin(arrays);
  for (const int iterations : {0, 1, 100}) {
    SCOPED_TRACE(iterations);
    options.max_iterations = iterations;
    const ContactSolution solution = Solve(Checked(arrays), options);
    const std::vector<long double> expected = twin.Drifts(solution, options.rest->horizon);
    for (size_t i = 0; i < solution.islands.size(); ++i) {
      const auto drift = static_cast<double>(expected[i]);
      EXPECT_GE(solution.islands[i].rest_drift, drift * (1 - 1e-13)) << i;
      EXPECT_LE(solution.islands[i].rest_drift, drift * (1 + 1e-8)) << i;
    }
  }
}

TEST(RestCertificateTest, DriftIsThatOfADenseTwin) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    for (ProblemArrays arrays :
         {RandomTreesInContact(seed), RandomBodiesInContact(seed, 6, 14),
          RandomConstraintsOfEveryKind(seed), InParts(RandomTreesInContact(seed), {3, 1, 2})}) {
      DrawInitialVelocity(seed, &arrays);
      ExpectDriftsOfTwin(arrays, Asking());
      ExpectDriftsOfTwin(arrays, Asking(1e-3 * arrays.time_step));
    }
  }
}

// The accelerated method solves islands of one body in lanes.
TEST(RestCertificateTest, DriftInLanesIsThatOfADenseTwin) {
  ProblemArrays arrays;
  Random random(7);
  for (int body = 0; body < 11; ++body) {
    const int number = arrays.AddBody(Uniform(&random, 0.1, 10), {0.1, 0.2, 0.15},
                                      RandomUnitVector(&random), UniformVector(&random, 6, -1, 1));
    for (int contact = 0; contact < 3; ++contact) {
      arrays.AddBodyContact(number, -1, RandomUnitVector(&random), RandomUnitVector(&random), {});
    }
  }
  // A tree of six degrees of freedom is not known to be a body.
  const int tree =
      arrays.AddTree(RandomDynamicsMatrix(&random, 6, 0.1, 1), Eigen::VectorXd::Ones(6));
  arrays.AddContact(tree, ProblemArrays::Jacobian::Random(3, 6), {});
  DrawInitialVelocity(7, &arrays);
  for (const NewtonMethod newton : {NewtonMethod::kAccelerated, NewtonMethod::kPlain}) {
    SolverOptions options = Asking();
    options.newton = newton;
    ExpectDriftsOfTwin(arrays, options);
  }
}

// A tree of more degrees of freedom than are factored row by row.
TEST(RestCertificateTest, DriftOfALargeTreeIsThatOfADenseTwin) {
  ProblemArrays arrays = LargeTree(70, 5);
  DrawInitialVelocity(1, &arrays);
  ExpectDriftsOfTwin(arrays, Asking());
}

// The same problem one step later, with the same frames, targets and loads.
void Advance(const std::vector<double>& v, ProblemArrays* arrays) {
  auto at = v.begin();
  const auto advance = [&at](auto& group) {
    for (size_t i = 0; i < group.initial_velocity.size(); ++i, ++at) {
      group.free_motion_velocity[i] += *at - group.initial_velocity[i];
      group.initial_velocity[i] = *at;
    }
    group.guess_velocity = group.initial_velocity;
  };
  advance(arrays->trees);
  advance(arrays->bodies);
}

struct HeldProblem {
  std::string name;
  GoldenSet set;
};

class HeldFramesTest : public ::testing::TestWithParam<HeldProblem> {};

// With frames, targets and loads held steps are proximal points of one convex function: |v_(k+1) -
// v_k|_A never grows, and no island moves further than the certificate of any of its velocities
// says, whether the solve was cut short or not.
TEST_P(HeldFramesTest, VelocitiesContractAndMotionIsWithinTheDrift) {
  constexpr int kSteps = 24;
  ProblemArrays arrays = LoadGolden(GetParam().name, GetParam().set).arrays;
  arrays.trees.initial_velocity = arrays.trees.guess_velocity;
  arrays.bodies.initial_velocity = arrays.bodies.guess_velocity;
  if (arrays.trees.initial_velocity.empty()) {
    arrays.trees.initial_velocity = arrays.trees.free_motion_velocity;
  }
  if (arrays.bodies.initial_velocity.empty()) {
    arrays.bodies.initial_velocity = arrays.bodies.free_motion_velocity;
  }
  const double dt = arrays.time_step;
  const RestTwin twin(arrays);
  std::vector<ContactSolution> certificates;
  for (const int iterations : {0, 1, 500}) {
    SolverOptions options = Asking(kSteps * dt);
    options.max_iterations = iterations;
    certificates.push_back(Solve(Checked(arrays), options));
  }
  SolverOptions options;
  options.relative_tolerance = 1e-13;
  VectorL v = twin.v_0();
  VectorL moved = VectorL::Zero(v.size());
  long double last_change = kInfinity, last_error = 0;
  for (int k = 0; k < kSteps; ++k) {
    const ContactSolution solution = Solve(Checked(arrays), options);
    const VectorL next = ToVectorL(solution.velocity);
    const long double change = twin.NormA(next - v);
    const long double error = CertifiedVelocityError(solution);
    EXPECT_LE(static_cast<double>(change),
              static_cast<double>(last_change + error + 2 * last_error))
        << "step " << k;
    last_change = change;
    last_error = error;
    v = next;
    moved += dt * v;
    Advance(solution.velocity, &arrays);
  }
  for (const ContactSolution& certificate : certificates) {
    const std::vector<long double> motions = twin.Motions(certificate, moved);
    for (size_t i = 0; i < motions.size(); ++i) {
      EXPECT_LE(static_cast<double>(motions[i]), certificate.islands[i].rest_drift * (1 + 1e-9))
          << "island " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Problems, HeldFramesTest,
    ::testing::Values(HeldProblem{"clutter_bin_4_t2p00", GoldenSet::kFriction},
                      HeldProblem{"drake_plane_4_t1p00", GoldenSet::kFriction},
                      HeldProblem{"drake_bin_arm_12_t0p16", GoldenSet::kFriction},
                      HeldProblem{"nasty_vgroove_mu5", GoldenSet::kFriction},
                      HeldProblem{"nasty_small_trees_1", GoldenSet::kFriction},
                      HeldProblem{"adroit_ball_t0p30", GoldenSet::kFriction},
                      HeldProblem{"rows_servo_mixed", GoldenSet::kConstraints},
                      HeldProblem{"rows_loop_6_massratio_1e4", GoldenSet::kConstraints},
                      HeldProblem{"cone_balls_rolling_spinning", GoldenSet::kConstraints},
                      HeldProblem{"hc_stack_8_lagged", GoldenSet::kConstraints},
                      HeldProblem{"hc_stack_8_similar", GoldenSet::kConstraints},
                      HeldProblem{"cable_arm_spring", GoldenSet::kSoft},
                      HeldProblem{"tiny_4_nodes_face", GoldenSet::kSoft}),
    [](const auto& info) { return info.param.name; });

// A body above the ground from rest, judged at v = v_0 = 0: what it falls in so many steps.
TEST(RestCertificateTest, DriftOfAFallFromRestIsTheFall) {
  constexpr double kG = 9.81;
  ProblemArrays arrays;
  arrays.AddBody(2, {0.1, 0.1, 0.1}, {0, 0, 1}, {0, 0, -kG * arrays.time_step, 0, 0, 0});
  arrays.AddBodyContact(0, -1, {0, 0, 0}, {0, 0, 1}, {.signed_distance = 1, .stiffness = 1});
  arrays.bodies.initial_velocity.assign(6, 0);
  arrays.bodies.guess_velocity.assign(6, 0);
  for (const int steps : {1, 2, 25}) {
    SolverOptions options = Asking(steps * arrays.time_step);
    options.max_iterations = 0;
    const double fall = kG * arrays.time_step * arrays.time_step * steps * (steps + 1) / 2;
    const double drift = Solve(Checked(arrays), options).islands[0].rest_drift;
    EXPECT_GE(drift, fall * (1 - 1e-13));
    EXPECT_LE(drift, fall * (1 + 1e-10));
  }
}

// Boxes at rest on their springs: the drift is what rounding errors explain.
TEST(RestCertificateTest, DriftOfABalancedBodyIsRounding) {
  constexpr double kG = 9.81;
  ProblemArrays arrays;
  arrays.AddBody(1, {0.1, 0.1, 0.1}, {0, 0, 1}, {0, 0, -kG * arrays.time_step, 0, 0, 0});
  arrays.AddBodyContact(0, -1, {0, 0, 0}, {0, 0, 1},
                        {.signed_distance = -kG / 1e4, .stiffness = 1e4});
  arrays.regularization.beta = 0;
  arrays.bodies.initial_velocity.assign(6, 0);
  arrays.bodies.guess_velocity.assign(6, 0);
  const ContactSolution solution = Solve(Checked(arrays), Asking());
  EXPECT_EQ(solution.islands[0].iterations, 0);
  EXPECT_GT(solution.islands[0].rest_drift, 0);
  EXPECT_LT(solution.islands[0].rest_drift, 1e-12);
}

TEST(RestCertificateTest, AskingChangesNothingElse) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    ProblemArrays arrays = RandomConstraintsOfEveryKind(seed);
    const ContactSolution without_velocity = Solve(Checked(arrays));
    DrawInitialVelocity(seed, &arrays);
    const ContactSolution plain = Solve(Checked(arrays));
    const ContactSolution asked = Solve(Checked(arrays), Asking());
    ExpectSameBits(plain, without_velocity);
    ExpectSameBits(asked, plain);
    EXPECT_FALSE(HasRestReports(plain.islands));
    EXPECT_TRUE(HasRestReports(asked.islands));
  }
}

// The bits are those of any number of threads.
TEST(RestCertificateTest, DriftsAreThoseOfOneThread) {
  ProblemArrays arrays = HeapsBeforeAPile(3, 90);
  DrawInitialVelocity(3, &arrays);
  const ContactProblem problem = Checked(arrays);
  const ContactSolution one = Solve(problem, Asking());
  TaskArena arena(3, Sharing::kAlways);
  Solver solver(&arena);
  ContactSolution solution;
  ASSERT_TRUE(solver.Solve(problem, Asking(), StopToken(), &solution));
  ASSERT_EQ(solution.islands.size(), one.islands.size());
  for (size_t i = 0; i < one.islands.size(); ++i) {
    EXPECT_EQ(solution.islands[i].rest_drift, one.islands[i].rest_drift) << i;
  }
}

TEST(RestCertificateTest, IsInfiniteWhereNothingIsKnown) {
  ProblemArrays arrays = RandomBodiesInContact(3, 4, 9);
  EXPECT_EQ(Solve(Checked(arrays), Asking()).islands[0].rest_drift, kInfinity) << "no v_0";
  DrawInitialVelocity(3, &arrays);
  EXPECT_LT(Solve(Checked(arrays), Asking()).islands[0].rest_drift, kInfinity);
  SolverOptions exact = Asking();
  exact.coulomb.emplace();
  EXPECT_EQ(Solve(Checked(arrays), exact).islands[0].rest_drift, kInfinity);
  for (double& friction : arrays.body_contacts.law.friction) friction = 1e200;
  const ContactSolution failed = Solve(Checked(arrays), Asking());
  EXPECT_EQ(failed.islands[0].status, SolveStatus::kNumericalFailure);
  EXPECT_EQ(failed.islands[0].rest_drift, kInfinity);
}

TEST(RestCertificateTest, WhatNoConstraintTouchesNeedsNoInitialVelocity) {
  ProblemArrays arrays = RandomBodiesInContact(3, 4, 9);
  EXPECT_STREQ(Checked(arrays).MissingInitialVelocity(), "bodies.initial_velocity");
  DrawInitialVelocity(3, &arrays);
  EXPECT_EQ(Checked(arrays).MissingInitialVelocity(), nullptr);
  arrays.AddTree(Eigen::MatrixXd::Identity(2, 2), Eigen::VectorXd::Zero(2));
  EXPECT_EQ(Checked(arrays).MissingInitialVelocity(), nullptr);
  EXPECT_LT(Solve(Checked(arrays), Asking()).islands[0].rest_drift, kInfinity);
  arrays.AddRow({0, 1}, {1.0, -1.0});
  EXPECT_STREQ(Checked(arrays).MissingInitialVelocity(), "trees.initial_velocity");
  arrays.trees.initial_velocity = {0.0, 0.0};
  EXPECT_EQ(Checked(arrays).MissingInitialVelocity(), nullptr);
}

}  // namespace
}  // namespace sap::test
