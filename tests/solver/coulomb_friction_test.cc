// Exact Coulomb friction: answers in closed form, what holds of every answer, and the status of
// rounds that do not end.
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "solver/newton/coulomb_rounds.h"
#include "solver/solve.h"
#include "tests/solver/prepared_problem.h"
#include "tests/support/golden_problem.h"
#include "tests/support/random_problem.h"
#include "tests/support/same_bits.h"

namespace sap::test {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using Jacobian = ProblemArrays::Jacobian;

constexpr double kGravity = 9.81;
constexpr double kTimeStep = 0.01;
constexpr double kRoot = std::numbers::sqrt2 / 2;

SolverOptions Exact(double tolerance = 1e-12) {
  SolverOptions options;
  options.relative_tolerance = tolerance;
  options.coulomb.emplace();
  return options;
}

// Contacts of one tree of three dofs with the world.
struct Point {
  ProblemArrays arrays;

  Point(const Matrix3d& A, const Vector3d& v_star) {
    arrays.AddTree(A, v_star);
    arrays.time_step = kTimeStep;
  }
  Point& Contact(const Matrix3d& J, double mu, double R_t, double R_n, double phi = 0,
                 const Vector3d& surface = Vector3d::Zero()) {
    arrays.AddContact(0, J, {.signed_distance = phi, .relaxation_time = 0, .friction = mu});
    auto& law = arrays.contacts.law;
    law.regularization_t.push_back(R_t);
    law.regularization_n.push_back(R_n);
    law.surface_velocity.insert(law.surface_velocity.end(), surface.begin(), surface.end());
    return *this;
  }
  ContactSolution Solve(const SolverOptions& options = Exact()) const {
    return sap::Solve(Checked(arrays), options);
  }
};

void ExpectNear(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-9) << i;
}

void ExpectConverged(const ContactSolution& solution) {
  for (const IslandReport& report : solution.islands) {
    EXPECT_EQ(report.status, SolveStatus::kConverged);
    EXPECT_TRUE(std::isfinite(report.coulomb_defect));
  }
}

// A point mass that slides along t1 on a floor: its normal impulse is that of a spring and friction
// is mu times it, so the convex drift mu v_t is gone.
struct Slider {
  double mass;
  Vector3d v_star;
  double mu, R_t, R_n;

  void ExpectClosedForm() const {
    const ContactSolution solution = Point(mass * Matrix3d::Identity(), v_star)
                                         .Contact(Matrix3d::Identity(), mu, R_t, R_n)
                                         .Solve();
    const double gamma_n = -mass * v_star.z() / (1 + mass * R_n);
    ExpectConverged(solution);
    ExpectNear(solution.impulse, {-mu * gamma_n, 0, gamma_n});
    ExpectNear(solution.velocity,
               {v_star.x() - mu * gamma_n / mass, 0, v_star.z() + gamma_n / mass});
  }
};

TEST(CoulombFrictionTest, APointSlidesOnTheFloorWithoutDriftingApart) {
  Slider{2, {3, 0, -0.0981}, 0.5, 5e-4, 7e-3}.ExpectClosedForm();
}
TEST(CoulombFrictionTest, APointThatHitsTheFloorAtAnAngleSlides) {
  Slider{1, {5, 0, -2}, 0.5, 1e-3, 1e-2}.ExpectClosedForm();
}
TEST(CoulombFrictionTest, APointSlidesWithACoefficientOfFive) {
  Slider{1, {4, 0, -0.3}, 5, 1e-3, 1e-2}.ExpectClosedForm();
}

// The convex model presses from a distance of up to dt mu v_t.
TEST(CoulombFrictionTest, AContactWithinReachOfTheConvexModelIsOpen) {
  const Point point = Point(Matrix3d::Identity(), {8, 0, -0.0981})
                          .Contact(Matrix3d::Identity(), 0.5, 1e-3, 1e-2, 0.02);
  EXPECT_GT(point.Solve({}).impulse[2], 1);
  const ContactSolution solution = point.Solve();
  ExpectConverged(solution);
  ExpectNear(solution.velocity, {8, 0, -0.0981});
  ExpectNear(solution.impulse, {0, 0, 0});
}

TEST(CoulombFrictionTest, APointSlidesAlongAGroove) {
  Matrix3d left, right;
  left << 0, 1, 0, kRoot, 0, -kRoot, kRoot, 0, kRoot;
  right << 0, 1, 0, kRoot, 0, kRoot, -kRoot, 0, kRoot;
  const double mu = 0.8, R_n = 1e-2, weight = kGravity * kTimeStep;
  const double phi = -kTimeStep * R_n * weight / (2 * kRoot);
  const ContactSolution solution = Point(Matrix3d::Identity(), {0, 2, -weight})
                                       .Contact(left, mu, 1e-3, R_n, phi)
                                       .Contact(right, mu, 1e-3, R_n, phi)
                                       .Solve();
  const double gamma_n = weight / (2 * kRoot);
  ExpectConverged(solution);
  ExpectNear(solution.velocity, {0, 2 - 2 * mu * gamma_n, 0});
  ExpectNear(solution.impulse, {-mu * gamma_n, 0, gamma_n, -mu * gamma_n, 0, gamma_n});
}

// Friction turns the rod and so changes its normal velocity: W_nt is not 0.
Matrix3d RodJacobian() {
  Matrix3d J;
  J << 1, 0, -0.2, 0, 0, 0, 0, 1, -0.5;
  return J;
}
const Vector3d kRodMass{1, 1, 0.05};

TEST(CoulombFrictionTest, ARodSlidesOnItsTip) {
  const double mu = 0.4, R_n = 1e-2, v_n = -0.2;
  const ContactSolution solution =
      Point(kRodMass.asDiagonal(), {2, v_n, 0}).Contact(RodJacobian(), mu, 1e-3, R_n).Solve();
  const double W_nn = 1 + 0.25 / 0.05, W_nt = 0.1 / 0.05;
  const double gamma_n = -v_n / (R_n + W_nn - mu * W_nt);
  ExpectConverged(solution);
  ExpectNear(solution.impulse, {-mu * gamma_n, 0, gamma_n});
}

TEST(CoulombFrictionTest, ABeltDragsAPointByFrictionAlone) {
  const double mass = 3, mu = 0.3, R_n = 5e-3, weight = kGravity * kTimeStep;
  const ContactSolution solution = Point(mass * Matrix3d::Identity(), {0, 0, -weight})
                                       .Contact(Matrix3d::Identity(), mu, 3e-4, R_n, 0, {1.5, 0, 0})
                                       .Solve();
  const double gamma_n = mass * weight / (1 + mass * R_n);
  ExpectConverged(solution);
  ExpectNear(solution.impulse, {-mu * gamma_n, 0, gamma_n});
  ExpectNear(solution.velocity, {-mu * gamma_n / mass, 0, -weight + gamma_n / mass});
}

// Beyond Painleve's paradox, mu W_nt > W_nn, a rod has three answers: it flies on, slides, or
// sticks. Each of them is accepted where it is the guess.
TEST(CoulombFrictionTest, EachAnswerOfPainlevesRodIsAnAnswer) {
  const double mu = 4, R_t = 1e-3, R_n = 1e-2, W_nn = 6, W_nt = 2, W_tt = 1 + 0.04 / 0.05;
  const Vector3d v_star{2, 0.05, 0};
  Point rod = Point(kRodMass.asDiagonal(), v_star).Contact(RodJacobian(), mu, R_t, R_n);
  const double sliding = -v_star.y() / (R_n + W_nn - mu * W_nt);
  Eigen::Matrix2d W;
  W << W_tt + R_t, W_nt, W_nt, W_nn + R_n;
  const Eigen::Vector2d stuck = -W.inverse() * Eigen::Vector2d(v_star.x(), v_star.y());
  ASSERT_GT(sliding, 0);
  ASSERT_LT(std::abs(stuck[0]), mu * stuck[1]);
  for (const Vector3d& gamma : {Vector3d::Zero().eval(), Vector3d(-mu * sliding, 0, sliding),
                                Vector3d(stuck[0], 0, stuck[1])}) {
    SCOPED_TRACE(gamma.transpose());
    const Vector3d v = v_star + (RodJacobian().transpose() * gamma).cwiseQuotient(kRodMass);
    rod.arrays.trees.guess_velocity = {v.x(), v.y(), v.z()};
    SolverOptions options = Exact(1e-10);
    options.max_iterations = 0;
    const ContactSolution solution = rod.Solve(options);
    ExpectConverged(solution);
    EXPECT_EQ(solution.islands[0].coulomb_rounds, 0);
    ExpectNear(solution.impulse, {gamma.x(), gamma.y(), gamma.z()});
  }
}

// Steps of a box on a floor at z = 0, as one contact below its center.
struct SlidingBox {
  Vector3d v;
  double z{0}, highest{0};

  void Steps(int count, const SolverOptions& options) {
    for (int i = 0; i < count; ++i) {
      ContactSolution solution =
          Point(Matrix3d::Identity(), v - Vector3d(0, 0, kGravity * kTimeStep))
              .Contact(Matrix3d::Identity(), 0.5, 1e-3, 1.65e-2, z)
              .Solve(options);
      v = Eigen::Map<const Vector3d>(solution.velocity.data());
      z += kTimeStep * v.z();
      highest = std::max(highest, z);
    }
  }
};

TEST(CoulombFrictionTest, ABoxPutDownAtSpeedDoesNotHopAndDeceleratesWithMuG) {
  for (const double speed : {1.0, 3.0, 10.0}) {
    SlidingBox exact{.v = {speed, 0, 0}}, convex{.v = {speed, 0, 0}};
    exact.Steps(20, Exact());
    convex.Steps(20, {});
    EXPECT_GT(convex.highest, 1e-3 * speed);
    EXPECT_LE(exact.highest, 0);
    EXPECT_NEAR(exact.v.x(), std::max(0.0, speed - 0.5 * kGravity * 0.2),
                0.5 * kGravity * kTimeStep * 0.02 + 1e-3);
  }
}

// The exact law from its definition, at the velocities and impulses that came back.
void ExpectExactLaw(const ProblemArrays& arrays, const ContactSolution& solution) {
  const PreparedProblem prepared(arrays);
  double largest = 0;
  for (const double gamma : solution.impulse) largest = std::max(largest, std::abs(gamma));
  for (int island = 0; island < prepared.graph.islands().count(); ++island) {
    const IslandView view = prepared.View(island);
    const double unit = view.constants().mass_unit;
    ForPoolsOf(view, [&](auto pool) {
      if constexpr (pool == kFrictionPool) {
        for (int i = view.range(pool).begin; i < view.range(pool).end; ++i) {
          const int contact = view.layout(pool).order()[i];
          const auto p = prepared.model.pools[pool].laws.At(i, double{});
          const double* gamma = &solution.impulse[3 * contact];
          const double* v_c = &solution.contact_velocity[3 * contact];
          const auto b = prepared.problem.surface_velocity().subspan(3 * contact, 3);
          const double gamma_n = std::max(0.0, (p.v_hat_n + b[2] - v_c[2]) / p.R_n) * unit;
          const double x = (p.v_hat_x + b[0] - v_c[0]) / p.R_t * unit;
          const double y = (p.v_hat_y + b[1] - v_c[1]) / p.R_t * unit;
          const double share = std::min(1.0, p.mu * gamma_n / std::hypot(x, y));
          EXPECT_NEAR(gamma[2], gamma_n, 1e-9 * largest) << contact;
          EXPECT_NEAR(gamma[0], std::hypot(x, y) > 0 ? share * x : 0, 1e-9 * largest) << contact;
          EXPECT_NEAR(gamma[1], std::hypot(x, y) > 0 ? share * y : 0, 1e-9 * largest) << contact;
        }
      }
    });
  }
}

SolverOptions ExactByInteriorPoint(double tolerance = 1e-6) {
  SolverOptions options = Exact(tolerance);
  options.interior_point = InteriorPoint::kAlways;
  return options;
}

class CoulombProblemTest : public testing::TestWithParam<std::string> {
 protected:
  const ProblemArrays arrays_{LoadGolden(GetParam()).arrays};
  const ContactProblem problem_{Checked(arrays_)};
};

TEST_P(CoulombProblemTest, ItsImpulsesAreThoseOfTheExactLawAndBalanceTheMomentum) {
  const ContactSolution solution = Solve(problem_, Exact(1e-6));
  ExpectConverged(solution);
  ExpectExactLaw(arrays_, solution);
  for (const IslandReport& report : solution.islands) {
    EXPECT_EQ(report.optimality_gap_bound, std::numeric_limits<double>::infinity());
  }
}

TEST_P(CoulombProblemTest, TheInteriorPointMethodEndsAtAnAnswerOfTheExactLaw) {
  const ContactSolution solution = Solve(problem_, ExactByInteriorPoint());
  ExpectConverged(solution);
  ExpectExactLaw(arrays_, solution);
}

TEST_P(CoulombProblemTest, BitsDoNotDependOnThreadsOrOnWhatWasSolvedBefore) {
  for (const SolverOptions& exact : {Exact(1e-6), ExactByInteriorPoint()}) {
    const ContactSolution alone = Solve(problem_, exact);
    for (const int threads : {1, 3}) {
      TaskArena arena(threads, Sharing::kAlways);
      Solver solver(&arena);
      ContactSolution solution;
      for (const SolverOptions& options : {SolverOptions(), exact}) {
        ASSERT_TRUE(solver.Solve(problem_, options, StopToken(), &solution));
      }
      ExpectSameBits(solution, alone);
      ASSERT_TRUE(solver.Solve(problem_, {}, StopToken(), &solution));
      ExpectSameBits(solution, Solve(problem_));
    }
  }
}

TEST_P(CoulombProblemTest, TheDefectFallsWithTheRoundsAndEveryLimitIsSaidSo) {
  double last = std::numeric_limits<double>::infinity();
  for (const uint32_t rounds : {0U, 1U, 2U, 4U}) {
    SolverOptions options = Exact(1e-6);
    options.coulomb->max_rounds = rounds;
    double defect = 0;
    for (const IslandReport& report : Solve(problem_, options).islands) {
      defect += report.coulomb_defect * report.coulomb_defect;
      EXPECT_LE(report.coulomb_rounds, static_cast<int>(rounds));
      if (report.status == SolveStatus::kConverged) continue;
      EXPECT_EQ(report.status, SolveStatus::kCoulombLimit);
      EXPECT_EQ(report.coulomb_rounds, static_cast<int>(rounds));
    }
    EXPECT_LE(defect, last * (1 + 1e-9));
    last = defect;
  }
}

TEST_P(CoulombProblemTest, IslandsApartHaveTheAnswerOfTheWhole) {
  const ContactSolution apart = Solve(problem_, Exact(1e-10));
  SolverOptions options = Exact(1e-10);
  options.islands = false;
  const ContactSolution whole = Solve(problem_, options);
  double largest = 0, difference = 0;
  for (size_t i = 0; i < apart.velocity.size(); ++i) {
    largest = std::max(largest, std::abs(apart.velocity[i]));
    difference = std::max(difference, std::abs(apart.velocity[i] - whole.velocity[i]));
  }
  EXPECT_LE(difference, 1e-6 * largest);
}

TEST_P(CoulombProblemTest, ALimitOnIterationsBoundsTheRoundsTogether) {
  for (SolverOptions options : {Exact(1e-6), ExactByInteriorPoint()}) {
    const int most = Iterations(Solve(problem_, options))[0];
    for (int limit = 0; limit <= most; limit += std::max(1, most / 7)) {
      options.max_iterations = limit;
      const ContactSolution solution = Solve(problem_, options);
      for (const IslandReport& report : solution.islands) {
        EXPECT_LE(report.iterations, limit);
        EXPECT_TRUE(std::isfinite(report.coulomb_defect));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, CoulombProblemTest,
                         testing::Values("clutter_bin_8_t2p00", "clutter_bin_40_t1p00",
                                         "drake_bin_arm_12_t0p16", "nasty_hub_50",
                                         "nasty_vgroove_mu0p1", "shadow_egg_t0p30"),
                         NameOfGolden);

// Every kind of constraint next to cones of three, four and six rows.
class CoulombConstraintsTest : public testing::TestWithParam<std::string> {};

TEST_P(CoulombConstraintsTest, RoundsEndNextToEveryKindOfConstraint) {
  const ContactProblem problem = Checked(LoadGolden(GetParam(), GoldenSet::kConstraints).arrays);
  SolverOptions options = Exact(1e-6);
  // A pile of 500 with rows takes 47 to over 100 rounds, as data change by 1e-12.
  options.coulomb->max_rounds = 300;
  ExpectConverged(Solve(problem, options));
}

INSTANTIATE_TEST_SUITE_P(Problems, CoulombConstraintsTest,
                         testing::ValuesIn(GoldenNames("", GoldenSet::kConstraints)), NameOfGolden);

// Coupled trees, as of soft bodies, whose A is not block diagonal.
class CoulombSoftTest : public testing::TestWithParam<std::string> {};

TEST_P(CoulombSoftTest, RoundsEndForCoupledTrees) {
  const ContactProblem problem = Checked(LoadGolden(GetParam(), GoldenSet::kSoft).arrays);
  ExpectConverged(Solve(problem, Exact(1e-6)));
}

INSTANTIATE_TEST_SUITE_P(Problems, CoulombSoftTest,
                         testing::ValuesIn(GoldenNames("", GoldenSet::kSoft)), NameOfGolden);

// The same problem with A as one block and as blocks of its parts.
TEST(CoulombFrictionTest, AHandInPartsHasTheDefectsAndTheAnswerOfTheHandWhole) {
  const ContactProblem whole = Checked(LoadGolden("hand_dense", GoldenSet::kSoft).arrays);
  const ContactProblem parts = Checked(LoadGolden("hand_parts", GoldenSet::kSoft).arrays);
  ASSERT_GT(std::ssize(parts.coupled_trees().pairs()), 0);
  SolverOptions options = Exact(1e-10);
  for (const uint32_t rounds : {0U, 1U, 100U}) {
    options.coulomb->max_rounds = rounds;
    const ContactSolution of_whole = Solve(whole, options);
    const ContactSolution of_parts = Solve(parts, options);
    ASSERT_EQ(of_parts.velocity.size(), of_whole.velocity.size());
    for (size_t i = 0; i < of_whole.velocity.size(); ++i) {
      EXPECT_NEAR(of_parts.velocity[i], of_whole.velocity[i], 1e-6) << i;
    }
    if (rounds > 1) continue;
    ASSERT_EQ(of_whole.islands[0].status, SolveStatus::kCoulombLimit);
    EXPECT_NEAR(of_parts.islands[0].coulomb_defect / of_whole.islands[0].coulomb_defect, 1, 1e-4);
  }
}

TEST(CoulombFrictionTest, StacksAtRestTakeNoRoundAndKeepTheBitsOfTheConvexAnswer) {
  ProblemArrays arrays;
  for (int i = 0; i < 5; ++i) {
    arrays.AddBody(1 + i, {0.1, 0.1, 0.1}, {3.0 * i, 0, 0.5},
                   (Eigen::Matrix<double, 6, 1>() << 0, 0, -0.0981, 0, 0, 0).finished());
    arrays.AddBodyContact(i, -1, {3.0 * i, 0, 0}, {0, 0, 1}, {});
  }
  const ContactProblem problem = Checked(arrays);
  const ContactSolution exact = Solve(problem, Exact(1e-6));
  const ContactSolution convex = Solve(problem);
  EXPECT_TRUE(SameBits(exact.velocity, convex.velocity));
  for (const IslandReport& report : exact.islands) EXPECT_EQ(report.coulomb_rounds, 0);
  for (const IslandReport& report : convex.islands) EXPECT_EQ(report.coulomb_defect, 0);
}

// Islands of one body are solved four at a time; each then has the rounds that it has alone.
TEST(CoulombFrictionTest, IslandsOfOneBodyHaveTheAnswerThatTheyHaveAlone) {
  const auto boxes = [](int first, int count) {
    ProblemArrays arrays;
    for (int i = first; i < first + count; ++i) {
      Eigen::Matrix<double, 6, 1> v_star;
      v_star << 1 + i, 0.2 * i, -0.5, 0, 0, 0.1 * i;
      const int body = arrays.AddBody(1 + i, {0.1, 0.2, 0.3}, {0, 0, 0.5}, v_star);
      for (const double x : {-0.5, 0.5}) arrays.AddBodyContact(body, -1, {x, 0, 0}, {0, 0, 1}, {});
    }
    return Solve(Checked(arrays), Exact(1e-8));
  };
  const ContactSolution together = boxes(0, 5);
  ExpectConverged(together);
  for (int i = 0; i < 5; ++i) {
    const ContactSolution alone = boxes(i, 1);
    EXPECT_GT(alone.islands[0].coulomb_rounds, 0);
    for (int k = 0; k < 6; ++k) EXPECT_EQ(alone.velocity[k], together.velocity[6 * i + k]) << i;
  }
}

TEST(CoulombFrictionTest, ADeadlineAndACancellationEndTheRounds) {
  const ContactProblem problem = Checked(LoadGolden("clutter_bin_40_t1p00").arrays);
  for (const SolverOptions& exact : {Exact(1e-6), ExactByInteriorPoint()}) {
    Solver solver(nullptr);
    ContactSolution solution;
    ASSERT_TRUE(solver.Solve(problem, exact, StopToken().Expired(), &solution));
    bool any = false;
    for (const IslandReport& report : solution.islands) {
      any |= report.status == SolveStatus::kDeadline;
      EXPECT_TRUE(report.status == SolveStatus::kDeadline ||
                  report.status == SolveStatus::kConverged);
      EXPECT_TRUE(std::isfinite(report.coulomb_defect));
    }
    EXPECT_TRUE(any);
    const std::atomic<bool> cancelled{true};
    const StopToken stop(&cancelled, std::chrono::steady_clock::time_point::max());
    ASSERT_TRUE(solver.Solve(problem, exact, stop, &solution));
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.status, SolveStatus::kCancelled);
    }
  }
}

// Small R, where rounds take hundreds of iterations.
class CoulombStiffTest : public testing::TestWithParam<std::string> {};

TEST_P(CoulombStiffTest, WhatRoundsSolveInFewIterationsIsSolvedAndEveryLimitIsSaidSo) {
  const ContactProblem problem = Checked(LoadGolden(GetParam(), GoldenSet::kStiff).arrays);
  SolverOptions never = Exact(1e-6);
  never.interior_point = InteriorPoint::kNever;
  const ContactSolution rounds = Solve(problem, never);
  const ContactSolution solution = Solve(problem, Exact(1e-6));
  constexpr int kOneLoop = 4 + 30;
  for (size_t i = 0; i < solution.islands.size(); ++i) {
    const IslandReport& report = solution.islands[i];
    const bool solved = report.status == SolveStatus::kConverged ||
                        report.status == SolveStatus::kStalledAtRoundoff;
    EXPECT_TRUE(solved || report.status == SolveStatus::kIterationLimit ||
                report.status == SolveStatus::kCoulombLimit);
    EXPECT_TRUE(std::isfinite(report.coulomb_defect));
    EXPECT_TRUE(solved || rounds.islands[i].iterations > kOneLoop);
  }
}

INSTANTIATE_TEST_SUITE_P(Problems, CoulombStiffTest,
                         testing::ValuesIn(GoldenNames("", GoldenSet::kStiff)), NameOfGolden);

TEST(CoulombFrictionTest, AStiffSiloEndsInOneLoopWithTheAnswerOfRounds) {
  for (const std::string name : {"silo_9_00", "silo_17_18"}) {
    const ProblemArrays arrays = LoadGolden(name, GoldenSet::kStiff).arrays;
    const ContactProblem problem = Checked(arrays);
    const ContactSolution solution = Solve(problem, Exact(1e-6));
    ExpectConverged(solution);
    for (const IslandReport& report : solution.islands) {
      EXPECT_EQ(report.coulomb_rounds, 0);
      EXPECT_LE(report.iterations, 4 + 30);
    }
    SolverOptions never = Exact(1e-6);
    never.interior_point = InteriorPoint::kNever;
    const ContactSolution rounds = Solve(problem, never);
    double largest = 0, difference = 0;
    for (size_t i = 0; i < solution.velocity.size(); ++i) {
      largest = std::max(largest, std::abs(rounds.velocity[i]));
      difference = std::max(difference, std::abs(rounds.velocity[i] - solution.velocity[i]));
    }
    EXPECT_LE(difference, 1e-5 * largest);
  }
}

// A tolerance below what rounding errors allow: one contact that slides, R = 1e-8 w.
TEST(CoulombFrictionTest, RoundsEndWhereRoundingErrorsExplainAllOfTheDefect) {
  Matrix3d J;
  J << 1.1, .2, -.1, .1, .9, .3, .2, -.4, 1.2;
  const Matrix3d A = Vector3d(2, 1.5, 3).asDiagonal();
  const double w = (J * A.inverse() * J.transpose()).norm() / 3;
  for (const double eps : {1e-3, 1e-6, 1e-8}) {
    const Point point = Point(A, {1.3, -.7, -2}).Contact(J, 0.4, eps * w, eps * w);
    for (const double tolerance : {1e-6, 1e-10, 1e-13, 0.0}) {
      SCOPED_TRACE(testing::Message() << eps << ", tolerance " << tolerance);
      IslandReport least;
      for (const uint32_t rounds : {100, 1000}) {
        SolverOptions options = Exact(tolerance);
        options.coulomb->max_rounds = rounds;
        const IslandReport report = point.Solve(options).islands[0];
        EXPECT_TRUE(report.status == SolveStatus::kConverged ||
                    report.status == SolveStatus::kStalledAtRoundoff);
        EXPECT_LE(report.coulomb_rounds, 20);
        if (rounds == 100) least = report;
        EXPECT_EQ(report.status, least.status);
        EXPECT_EQ(report.coulomb_defect, least.coulomb_defect);
      }
    }
  }
}

TEST(CoulombFrictionTest, OptionsOutOfRangeAreNamed) {
  SolverOptions options = Exact();
  EXPECT_TRUE(CheckOptions(options));
  options.coulomb->tolerance = 1;
  EXPECT_EQ(CheckOptions(options).error().field, "options.coulomb.tolerance");
  options.coulomb->tolerance.reset();
  options.coulomb->max_rounds = 10'001;
  EXPECT_EQ(CheckOptions(options).error().field, "options.coulomb.max_rounds");
}

TEST(CoulombFrictionTest, ThereAreNoDerivativesAndTheyAreNotThoseOfTheConvexModel) {
  const ContactProblem problem = Checked(LoadGolden("clutter_bin_8_t2p00").arrays);
  const std::vector<double> ones(problem.num_velocities(), 1.0);
  const Cotangent cotangent{.velocity = ones};
  const Derivatives derivatives = Differentiate(problem, Exact(1e-8), {&cotangent, 1});
  ASSERT_FALSE(derivatives.adjoint_status.empty());
  for (const AdjointStatus status : derivatives.adjoint_status) {
    EXPECT_EQ(status, AdjointStatus::kNumericalFailure);
  }
}

}  // namespace
}  // namespace sap::test
