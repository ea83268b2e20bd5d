// Rows, general cones and contacts of Hunt & Crossley by the whole solver, against answers by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "solver/solve.h"
#include "tests/support/dense_algebra.h"
#include "tests/support/random_problem.h"

namespace sap::test {
namespace {

using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Vector6d = Eigen::Matrix<double, 6, 1>;

constexpr double kTimeStep = 0.01;
constexpr double kGravity = 10;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const SolverOptions kTight{.relative_tolerance = 1e-13};

// One row on one joint of inertia a: gamma = (v_hat - v* - b + R u') / (R + 1/a) between its
// bounds.
struct Joint {
  double inertia{2}, v_star{0}, R{1e-3};
  double target{0}, offset{0}, lower{-kInfinity}, upper{kInfinity}, feed_forward{0};

  ContactSolution Solved() const {
    ProblemArrays arrays;
    arrays.AddTree(MatrixXd::Constant(1, 1, inertia), VectorXd::Constant(1, v_star));
    arrays.AddRow({0}, {1});
    arrays.rows.regularization = {R};
    arrays.rows.target_velocity = {target};
    arrays.rows.velocity_offset = {offset};
    arrays.rows.force_lower = {lower};
    arrays.rows.force_upper = {upper};
    arrays.rows.force_offset = {feed_forward};
    return Solve(Checked(arrays), kTight);
  }

  double ImpulseByHand() const {
    const double free =
        (target - v_star - offset + R * kTimeStep * feed_forward) / (R + 1 / inertia);
    return std::clamp(free, kTimeStep * lower, kTimeStep * upper);
  }
};

void ExpectAsByHand(const Joint& joint) {
  const ContactSolution solution = joint.Solved();
  const double impulse = joint.ImpulseByHand();
  ASSERT_EQ(solution.islands.size(), 1u);  // a row on one tree alone makes an island
  EXPECT_EQ(solution.islands[0].status, SolveStatus::kConverged);
  EXPECT_EQ(solution.islands[0].rows, 1);
  EXPECT_EQ(solution.islands[0].contacts, 0);
  EXPECT_EQ(solution.island_of_tree, std::vector<int32_t>{0});
  EXPECT_NEAR(solution.row_impulse[0], impulse, 1e-12 * (1 + std::abs(impulse)));
  EXPECT_NEAR(solution.velocity[0], joint.v_star + impulse / joint.inertia, 1e-12);
  EXPECT_NEAR(solution.row_velocity[0], solution.velocity[0] + joint.offset, 1e-15);
}

TEST(ConstraintClosedFormTest, MotorBelowItsLimitReachesItsSpeedWithinTheRegularization) {
  ExpectAsByHand({.target = 0.3, .lower = -100, .upper = 100});
}

TEST(ConstraintClosedFormTest, MotorAtItsLimitExertsItsLimit) {
  const Joint motor{.target = 3, .lower = -100, .upper = 100};
  EXPECT_EQ(motor.ImpulseByHand(), 1);
  ExpectAsByHand(motor);
}

TEST(ConstraintClosedFormTest, FeedForwardOfAMotorIsAddedBeforeItsLimit) {
  ExpectAsByHand({.R = 0.1, .feed_forward = 20});
  ExpectAsByHand({.R = 0.1, .upper = 5, .feed_forward = 2000});
  // A feed-forward that balances a load leaves no error of speed.
  const Joint holding{.v_star = -0.5, .R = 10, .feed_forward = 100};
  EXPECT_NEAR(holding.Solved().velocity[0], 0, 1e-12);
}

TEST(ConstraintClosedFormTest, DryFrictionSticksBelowItsLimitAndSlidesAtIt) {
  for (const double v_star : {0.04, 0.2, -0.2}) {
    ExpectAsByHand({.v_star = v_star, .R = 1e-6, .lower = -10, .upper = 10});
  }
  EXPECT_NEAR(Joint({.v_star = 0.04, .R = 1e-6, .lower = -10, .upper = 10}).Solved().velocity[0], 0,
              1e-6);
  EXPECT_NEAR(Joint({.v_star = 0.2, .R = 1e-6, .lower = -10, .upper = 10}).Solved().velocity[0],
              0.15, 1e-12);
}

TEST(ConstraintClosedFormTest, RowOfEqualBoundsIsAConstantForce) {
  for (const double force : {30.0, 0.0, -7.0}) {
    ExpectAsByHand({.v_star = 0.4, .target = 1, .lower = force, .upper = force});
  }
}

TEST(ConstraintClosedFormTest, VelocityOffsetIsWhatTheRowHasToCompensate) {
  ExpectAsByHand({.v_star = 0.4, .target = 0.1, .offset = -0.6});
  EXPECT_NEAR(Joint({.R = 1e-9, .offset = -0.6}).Solved().velocity[0], 0.6, 1e-8);
}

// Below its limit a joint moves freely; at it, as fast as it may reach it in this step.
TEST(ConstraintClosedFormTest, JointLimitLetsTheJointReachItAndNoMore) {
  for (const double distance : {0.02, 0.001}) {
    ProblemArrays arrays;
    arrays.AddTree(MatrixXd::Constant(1, 1, 2.0), VectorXd::Constant(1, -1.0));
    arrays.AddRow({0}, {1});
    arrays.rows.position_error = {distance};
    arrays.rows.force_lower = {0};
    arrays.regularization.row_beta = 1e-4;
    const ContactSolution solution = Solve(Checked(arrays), kTight);
    EXPECT_NEAR(solution.velocity[0], std::max(-1.0, -distance / kTimeStep), 1e-8);
    EXPECT_EQ(solution.row_impulse[0] > 0, distance < 0.01);
  }
}

// A compliant limit is a spring and a damper, implicit in time.
TEST(ConstraintClosedFormTest, CompliantLimitIsASpringImplicitInTime) {
  constexpr double kMass = 2, kStiffness = 500, kError = -0.003, kTau = 0.02, kSpeed = -0.1;
  ProblemArrays arrays;
  arrays.AddTree(MatrixXd::Constant(1, 1, kMass), VectorXd::Constant(1, kSpeed));
  arrays.AddRow({0}, {1});
  arrays.rows.position_error = {kError};
  arrays.rows.stiffness = {kStiffness};
  arrays.rows.relaxation_time = {kTau};
  const double v = Solve(Checked(arrays), kTight).velocity[0];
  const double force = -kStiffness * (kError + (kTimeStep + kTau) * v);
  EXPECT_NEAR(kMass * (v - kSpeed), kTimeStep * force, 1e-13);
}

// R of rows that stand for rigid ones [1/kg]. Masses and impulses here are about 1, so that it
// changes velocities by about as much, and rounding errors of these divided by it change impulses
// by less.
constexpr double kNearlyRigid = 1e-8;
constexpr double kRigidError = 10 * kNearlyRigid;

// Under the rigid constraint J v = 0, v is the projection of v* in the A-norm.
VectorXd Projected(const MatrixXd& A, const MatrixXd& J, const VectorXd& v_star) {
  const MatrixL J_L = J.cast<long double>();
  const MatrixL A_inverse_J = InverseOf(A.cast<long double>()) * J_L.transpose();
  const VectorL velocity = (J * v_star).cast<long double>();
  return v_star - (A_inverse_J * SolutionOf(J_L * A_inverse_J, velocity)).cast<double>();
}

void AddRigidRows(const MatrixXd& J, ProblemArrays* arrays) {
  for (int i = 0; i < J.rows(); ++i) {
    std::vector<uint32_t> index;
    std::vector<double> coefficient;
    for (int j = 0; j < J.cols(); ++j) {
      if (J(i, j) == 0) continue;
      index.push_back(static_cast<uint32_t>(j));
      coefficient.push_back(J(i, j));
    }
    arrays->AddRow(index, coefficient);
    arrays->rows.regularization.push_back(kNearlyRigid);
  }
}

// A bar of length 2 l hangs by a pin at its end: three rows, and it turns about the pin with the
// inertia I + m l^2.
TEST(ConstraintClosedFormTest, PinnedBodyIsAPendulum) {
  constexpr double kMass = 3, kLength = 0.5, kInertia = 0.2;
  Vector6d v_star = Vector6d::Zero();
  v_star[2] = -kTimeStep * kGravity;
  ProblemArrays arrays;
  arrays.AddBody(kMass, Vector3d::Constant(kInertia), {kLength, 0, 0}, v_star);
  MatrixXd J = MatrixXd::Zero(3, 6);  // of the origin, at r = (-l, 0, 0)
  J.leftCols<3>().setIdentity();
  J(1, 5) = -kLength;
  J(2, 4) = kLength;
  AddRigidRows(J, &arrays);
  const ContactSolution solution = Solve(Checked(arrays), kTight);
  const double turn =
      kTimeStep * kMass * kGravity * kLength / (kInertia + kMass * kLength * kLength);
  EXPECT_NEAR(solution.velocity[4], turn, kRigidError);
  EXPECT_NEAR(solution.velocity[2], -turn * kLength, kRigidError);
  EXPECT_NEAR(solution.row_impulse[2], kMass * (kTimeStep * kGravity - turn * kLength),
              kRigidError);
}

TEST(ConstraintClosedFormTest, CouplerKeepsTheRatioOfTwoJoints) {
  constexpr double kRatio = 2.5;
  ProblemArrays arrays;
  arrays.AddTree(MatrixXd::Constant(1, 1, 2.0), VectorXd::Constant(1, 1.0));
  arrays.AddTree(MatrixXd::Constant(1, 1, 0.5), VectorXd::Constant(1, -0.4));
  MatrixXd J(1, 2);
  J << 1, -kRatio;
  AddRigidRows(J, &arrays);
  const ContactSolution solution = Solve(Checked(arrays), kTight);
  // Geared, the second joint adds its momentum by the ratio.
  const double v_1 = (2.0 * kRatio * 1.0 + 0.5 * -0.4) / (2.0 * kRatio * kRatio + 0.5);
  EXPECT_NEAR(solution.velocity[1], v_1, kRigidError);
  EXPECT_NEAR(solution.velocity[0], kRatio * v_1, kRigidError);
  EXPECT_EQ(solution.islands.size(), 1u);
}

// Six rows between two bodies at different places.
TEST(ConstraintClosedFormTest, WeldOfTwoBodiesMovesAsOneBody) {
  Random random(3);
  constexpr double kMass[] = {1.5, 0.4};
  const Vector3d center[] = {{0, 0, 0}, {0.3, -0.2, 0.5}};
  const Vector3d inertia[] = {{0.1, 0.2, 0.15}, {0.02, 0.03, 0.01}};
  ProblemArrays arrays;
  VectorXd v_star = UniformVector(&random, 12, -1, 1);
  for (int i : {0, 1}) {
    arrays.AddBody(kMass[i], inertia[i], center[i], v_star.segment<6>(6 * i));
  }
  const auto cross = [](const Vector3d& r) {
    return (Eigen::Matrix3d() << 0, -r.z(), r.y(), r.z(), 0, -r.x(), -r.y(), r.x(), 0).finished();
  };
  const Vector3d r = center[1] - center[0];
  MatrixXd J = MatrixXd::Zero(6, 12);  // v_1 = v_0 + w_0 x r and w_1 = w_0
  J.leftCols<6>() = -MatrixXd::Identity(6, 6);
  J.rightCols<6>().setIdentity();
  J.block<3, 3>(0, 3) = cross(r);
  AddRigidRows(J, &arrays);
  const ContactSolution solution = Solve(Checked(arrays), kTight);

  // The one body keeps the momentum, and the angular momentum about the first center.
  Eigen::Matrix<double, 6, 6> M = Eigen::Matrix<double, 6, 6>::Zero();
  Vector6d momentum = Vector6d::Zero();
  for (int i : {0, 1}) {
    const Eigen::Matrix3d X = cross(center[i] - center[0]);
    Eigen::Matrix<double, 6, 6> move = Eigen::Matrix<double, 6, 6>::Identity();
    move.topRightCorner<3, 3>() = -X;
    Vector6d diagonal;
    diagonal << Vector3d::Constant(kMass[i]), inertia[i];
    M += move.transpose() * diagonal.asDiagonal() * move;
    momentum += move.transpose() * diagonal.cwiseProduct(v_star.segment<6>(6 * i));
  }
  const VectorL v_0 = SolutionOf(M.cast<long double>(), momentum.cast<long double>());
  for (int j = 0; j < 6; ++j)
    EXPECT_NEAR(solution.velocity[j], static_cast<double>(v_0[j]), kRigidError) << j;
}

TEST(ConstraintClosedFormTest, TendonOverEightTreesIsTheProjectionInTheNormOfA) {
  Random random(4);
  ProblemArrays arrays;
  MatrixXd A = MatrixXd::Zero(24, 24);
  const VectorXd v_star = UniformVector(&random, 24, -1, 1);
  for (int tree = 0; tree < 8; ++tree) {
    A.block<3, 3>(3 * tree, 3 * tree) = RandomDynamicsMatrix(&random, 3, 0.1, 2);
    arrays.AddTree(A.block<3, 3>(3 * tree, 3 * tree), v_star.segment<3>(3 * tree));
  }
  const MatrixXd J = UniformVector(&random, 24, 0.2, 1).transpose();
  AddRigidRows(J, &arrays);
  const ContactSolution solution = Solve(Checked(arrays), kTight);
  const VectorXd v = Projected(A, J, v_star);
  for (int i = 0; i < 24; ++i) EXPECT_NEAR(solution.velocity[i], v[i], kRigidError) << i;
  EXPECT_EQ(solution.islands.size(), 1u);
  // Slack, it pulls nobody.
  arrays.rows.force_lower = {0};
  arrays.rows.position_error = {100};
  const ContactSolution slack = Solve(Checked(arrays), kTight);
  for (int i = 0; i < 24; ++i) EXPECT_NEAR(slack.velocity[i], v_star[i], 1e-12) << i;
}

// Chains of coupled joints, some with limits: sweeps converge to the answer of Newton.
TEST(ConstraintClosedFormTest, SweepsOverRowsConvergeToTheAnswerOfNewton) {
  Random random(5);
  ProblemArrays arrays;
  for (int tree = 0; tree < 10; ++tree) {
    arrays.AddTree(RandomDynamicsMatrix(&random, 2, 0.5, 2), UniformVector(&random, 2, -1, 1));
  }
  for (uint32_t i = 0; i + 2 < 20; i += 2) arrays.AddRow({i, i + 3}, {1, -0.7});
  for (uint32_t i = 0; i < 20; ++i) arrays.AddRow({i}, {1});
  arrays.rows.regularization.assign(29, 0.05);
  arrays.rows.force_lower.assign(9, -kInfinity);
  arrays.rows.force_lower.resize(29, -20);
  arrays.rows.force_upper.assign(9, kInfinity);
  arrays.rows.force_upper.resize(29, 20);
  const ContactProblem problem = Checked(arrays);
  const ContactSolution newton = Solve(problem, kTight);
  const ContactSolution swept = Solve(problem, {.relative_tolerance = 1e-10,
                                                .max_iterations = 100'000,
                                                .newton = NewtonMethod::kGaussSeidel});
  ASSERT_EQ(swept.islands.size(), 1u);
  EXPECT_TRUE(swept.islands[0].swept);
  EXPECT_EQ(swept.islands[0].status, SolveStatus::kConverged);
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(swept.velocity[i], newton.velocity[i], 1e-8) << i;
}

TEST(ConstraintClosedFormTest, LimitsOfIterationsAndTimeHoldForRows) {
  Random random(6);
  ProblemArrays arrays;
  for (int tree = 0; tree < 30; ++tree) {
    arrays.AddTree(RandomDynamicsMatrix(&random, 3, 0.5, 2), UniformVector(&random, 3, -1, 1));
  }
  for (uint32_t i = 0; i + 3 < 90; ++i) arrays.AddRow({i, i + 3}, {1, -1});
  arrays.rows.force_upper.assign(87, 10);
  arrays.rows.force_lower.assign(87, -10);
  const ContactProblem problem = Checked(arrays);
  const ContactSolution limited =
      Solve(problem, {.relative_tolerance = 1e-14, .max_iterations = 1});
  EXPECT_EQ(limited.islands[0].status, SolveStatus::kIterationLimit);
  EXPECT_EQ(limited.islands[0].iterations, 1);
  EXPECT_TRUE(std::isfinite(limited.islands[0].optimality_gap_bound));

  Solver solver(nullptr);
  ContactSolution solution;
  const auto past = StopToken::Clock::now() - std::chrono::seconds(1);
  ASSERT_TRUE(solver.Solve(problem, {}, StopToken(nullptr, past), &solution));
  EXPECT_EQ(solution.islands[0].status, SolveStatus::kDeadline);
  for (const double v : solution.velocity) EXPECT_TRUE(std::isfinite(v));
  EXPECT_EQ(solution.row_impulse.size(), 87u);

  const std::atomic<bool> cancelled{true};
  const StopToken stop(&cancelled, StopToken::Clock::time_point::max());
  ASSERT_TRUE(solver.Solve(problem, {}, stop, &solution));
  EXPECT_EQ(solution.islands[0].status, SolveStatus::kCancelled);
  EXPECT_EQ(solution.islands[0].optimality_gap_bound, kInfinity);
  for (int i = 0; i < problem.num_velocities(); ++i) {
    EXPECT_EQ(solution.velocity[i], problem.v_guess()[i]);
  }
  ASSERT_TRUE(solver.Solve(problem, {}, StopToken(), &solution));
  EXPECT_EQ(solution.velocity, Solve(problem).velocity);
}

// A body with one contact under its center, whose angular axes are its own.
struct Block {
  double mass{2}, inertia{0.05}, mu{0.5}, R{1e-6};
  double friction_2{0.5}, torsional{0}, rolling{0}, adhesion{0};
  Vector6d v_star{Vector6d::Zero()};

  ContactSolution Solved() const {
    ProblemArrays arrays;
    arrays.AddBody(mass, Vector3d::Constant(inertia), Vector3d::Zero(), v_star);
    arrays.AddBodyContact(0, -1, Vector3d::Zero(), Vector3d::UnitZ(), {.friction = mu});
    LawArrays& law = arrays.body_contacts.law;
    law.regularization_t = {R};
    law.regularization_n = {R};
    law.friction_2 = {friction_2};
    law.torsional_friction = {torsional};
    law.rolling_friction = {rolling, rolling};
    law.adhesion = {adhesion};
    return Solve(Checked(arrays), kTight);
  }
};

// It falls at 0.1 m/s, so that the floor gives m times that, up to R. Rounding errors of velocities
// of 1 m/s, divided by R, are below 1e-9 N s.
constexpr double kFall = -0.1;

TEST(ConeClosedFormTest, SpinningBlockLosesTheTorqueOfItsTorsionalFriction) {
  for (const double spin : {5.0, 0.02}) {
    Block block{.torsional = 0.01};
    block.v_star[2] = kFall;
    block.v_star[5] = spin;
    const ContactSolution solution = block.Solved();
    const double normal = solution.impulse[2];
    if (spin == 5.0) {
      // On the edge of the cone the slip adds to the normal velocity, R_n gamma_n + R_t mu^2
      // gamma_n = -v_n + 0.01 w.
      EXPECT_NEAR(normal,
                  (-kFall + 0.01 * spin) / (block.R * (1 + block.mu * block.mu) + 1 / block.mass +
                                            0.01 * 0.01 / block.inertia),
                  1e-9);
      EXPECT_NEAR(solution.angular_impulse[2], -0.01 * normal, 1e-9);
      EXPECT_NEAR(solution.velocity[5], spin - 0.01 * normal / block.inertia, 1e-9);
    } else {
      EXPECT_NEAR(solution.angular_impulse[2], -block.inertia * spin, 1e-5);
      EXPECT_NEAR(normal, block.mass * -kFall, 1e-5);
      EXPECT_NEAR(solution.velocity[5], 0, 1e-3);
    }
  }
}

TEST(ConeClosedFormTest, RollingFrictionSlowsARollingBody) {
  Block block{.rolling = 0.02};
  block.v_star[2] = kFall;
  block.v_star[3] = 3;
  block.v_star[4] = -4;  // rolls about (3, -4) / 5
  const ContactSolution solution = block.Solved();
  const double torque = 0.02 * solution.impulse[2];
  EXPECT_NEAR(solution.angular_impulse[0], -torque * 0.6, 1e-9);
  EXPECT_NEAR(solution.angular_impulse[1], torque * 0.8, 1e-9);
  EXPECT_NEAR(solution.velocity[3], 3 - torque * 0.6 / block.inertia, 1e-9);
}

// Friction lies on the ellipse where the work against the slip is largest: gamma_j ~ mu_j^2 v_j.
TEST(ConeClosedFormTest, AnisotropicFrictionPointsAcrossTheEllipse) {
  Block block{.mu = 0.8, .friction_2 = 0.2};
  block.v_star << 2, 2, kFall, 0, 0, 0;
  const ContactSolution solution = block.Solved();
  const double g_1 = solution.impulse[0], g_2 = solution.impulse[1], g_n = solution.impulse[2];
  EXPECT_NEAR(std::hypot(g_1 / 0.8, g_2 / 0.2), g_n, 1e-10);
  const double v_1 = solution.velocity[0], v_2 = solution.velocity[1];
  EXPECT_GT(v_1, 0);
  EXPECT_NEAR(g_1 / g_2, 0.64 * v_1 / (0.04 * v_2), 1e-3);  // R shifts both by R gamma
  EXPECT_NEAR(v_1, 2 + g_1 / block.mass, 1e-9);
}

// Pulled up with less than the adhesion it stays, with more it leaves by the rest.
TEST(ConeClosedFormTest, AdhesionHoldsUpToItsForce) {
  constexpr double kAdhesion = 30;
  for (const double pull : {20.0, 29.0, 31.0, 50.0}) {
    Block block{.adhesion = kAdhesion};
    block.v_star[2] = kTimeStep * pull / block.mass;
    const ContactSolution solution = block.Solved();
    const double held = kTimeStep * std::min(pull, kAdhesion);
    EXPECT_NEAR(solution.impulse[2], -held, 1e-5 * held) << pull;
    EXPECT_NEAR(solution.velocity[2], block.v_star[2] - held / block.mass, 1e-5) << pull;
  }
}

// A point mass on a contact of Hunt & Crossley.
ContactSolution HuntCrossleyPoint(ContactLaw law, double mass, const Vector3d& v_star,
                                  double stiffness, double force, double dissipation, double mu,
                                  double lagged) {
  ProblemArrays arrays;
  arrays.AddTree(mass * MatrixXd::Identity(3, 3), v_star);
  arrays.AddContact(0, Eigen::Matrix3d::Identity(), {.stiffness = stiffness, .friction = mu});
  LawArrays& contact = arrays.contacts.law;
  contact.law = {static_cast<int32_t>(law)};
  contact.hunt_crossley.elastic_force = {force};
  contact.hunt_crossley.dissipation = {dissipation};
  contact.hunt_crossley.lagged_normal_impulse = {lagged};
  return Solve(Checked(arrays), kTight);
}

// m (v - v*) = dt (f - dt k v) (1 - d v) is a quadratic equation for v.
TEST(HuntCrossleyClosedFormTest, ImpactOfASphereSolvesItsQuadraticEquation) {
  constexpr double kMass = 0.5, kStiffness = 2e4, kForce = 30, kSpeed = -1.2;
  for (const ContactLaw law : {ContactLaw::kHuntCrossleyLagged, ContactLaw::kHuntCrossleySimilar}) {
    for (const double d : {0.0, 0.2, 3.0}) {
      const double v =
          HuntCrossleyPoint(law, kMass, {0, 0, kSpeed}, kStiffness, kForce, d, 0, 0).velocity[2];
      const double k = kTimeStep * kStiffness;
      const double a = kTimeStep * k * d;
      const double b = -kTimeStep * (k + d * kForce) - kMass;
      const double c = kTimeStep * kForce + kMass * kSpeed;
      // The root at which both factors are positive; for d = 0 the equation is linear.
      EXPECT_NEAR(v, 2 * c / (-b + std::sqrt(b * b - 4 * a * c)), 1e-11) << d;
    }
  }
}

TEST(HuntCrossleyClosedFormTest, FrictionOfTheLaggedLawCreepsOrSlides) {
  constexpr double kMass = 2, kMu = 0.5, kLagged = 0.2, kStictionSpeed = 1e-4;
  for (const double speed : {0.02, 1.0}) {
    const ContactSolution solution = HuntCrossleyPoint(ContactLaw::kHuntCrossleyLagged, kMass,
                                                       {speed, 0, 0}, 1e4, 20, 0.1, kMu, kLagged);
    const double v = solution.velocity[0];
    // w = |1/m|_F / 3, and sigma 1e-3.
    const double w = std::sqrt(3.0) / kMass / 3;
    const double eps = std::max(kStictionSpeed, kMu * 1e-3 * w * kLagged);
    EXPECT_NEAR(solution.impulse[0], -kMu * kLagged * v / std::hypot(v, eps), 1e-10);
    EXPECT_NEAR(kMass * (v - speed), solution.impulse[0], 1e-12);
    if (speed == 1.0) {
      EXPECT_NEAR(v, speed - kMu * kLagged / kMass, 1e-8);  // it slides
    } else {
      EXPECT_LT(std::abs(v), eps);  // the friction that stops it is below its bound
    }
  }
}

TEST(HuntCrossleyClosedFormTest, OfTheSimilarLawIsTheImpulseAtTheShiftedSpeed) {
  constexpr double kMass = 2, kMu = 0.5, kStiffness = 1e4, kForce = 20, kDissipation = 0.1;
  const ContactSolution solution =
      HuntCrossleyPoint(ContactLaw::kHuntCrossleySimilar, kMass, {0.3, -0.4, -0.1}, kStiffness,
                        kForce, kDissipation, kMu, 0);
  const double v_1 = solution.velocity[0], v_2 = solution.velocity[1];
  constexpr double kEps = 1e-4;
  const double root = std::hypot(v_1, v_2, kEps);
  const double z = solution.velocity[2] - kMu * (root - kEps);
  const double n = kTimeStep * (kForce - kTimeStep * kStiffness * z) * (1 - kDissipation * z);
  EXPECT_NEAR(solution.impulse[2], n, 1e-11);
  EXPECT_NEAR(solution.impulse[0], -kMu * n * v_1 / root, 1e-11);
  EXPECT_NEAR(kMass * (v_2 + 0.4), solution.impulse[1], 1e-11);
  EXPECT_NEAR(v_1 / v_2, -0.75, 1e-9);  // friction keeps the direction
}

// A hinge whose axis goes through a contact: the contact presses with the force of its spring, k
// phi0, and only torsion brakes the hinge.
//
//   R_n = 1 / (dt^2 k),   rho = sigma w mu^2,   w = 1e-6 (mu_s / mu)^2 / (3 I)
//   gamma_n = (dt^-1 phi + mu_s omega) / (R_n + rho),   I (omega - omega*) = -mu_s gamma_n
struct Pivot {
  double inertia{2}, speed{3}, stiffness{1e4}, overlap{1e-3}, mu{0.5}, arm{0.02};

  ProblemArrays Arrays() const {
    ProblemArrays arrays;
    arrays.AddTree(MatrixXd::Constant(1, 1, inertia), VectorXd::Constant(1, speed));
    arrays.AddContact(0, ProblemArrays::Jacobian::Zero(3, 1),
                      {.signed_distance = -overlap,
                       .stiffness = stiffness,
                       .relaxation_time = 0,
                       .friction = mu});
    arrays.contacts.law.torsional_friction = {mu * arm};
    arrays.contacts.angular_jacobian = {0, 0, 1};
    return arrays;
  }
  double Delassus() const { return 1e-6 * arm * arm / inertia / 3; }
  double SpeedByHand() const {
    const double R = 1 / (kTimeStep * kTimeStep * stiffness) + 1e-3 * Delassus() * mu * mu;
    const double torsion = mu * arm;
    return (inertia * speed - torsion * overlap / kTimeStep / R) /
           (inertia + torsion * torsion / R);
  }
};

constexpr DelassusRule kRules[] = {DelassusRule::kFull, DelassusRule::kDiagonal,
                                   DelassusRule::kLoadPath};

TEST(PivotClosedFormTest, TorsionBrakesByTheForceOfTheSpringUnderEveryRule) {
  for (const DelassusRule rule : kRules) {
    for (const double inertia : {1e-3, 1.999, 2.001, 4.0}) {
      const Pivot pivot{.inertia = inertia, .arm = 1e-2 * inertia};
      ProblemArrays arrays = pivot.Arrays();
      arrays.regularization.rule = rule;
      arrays.trees.initial_velocity = {1};
      const ContactSolution solution = Solve(Checked(arrays), kTight);
      EXPECT_EQ(solution.islands[0].status, SolveStatus::kConverged);
      EXPECT_NEAR(solution.velocity[0], pivot.SpeedByHand(), 1e-9);
      EXPECT_NEAR(solution.delassus_estimate[0], pivot.Delassus(), 1e-12 * pivot.Delassus());
    }
  }
}

// Whatever else is in the island, and however near the axis the contact is.
TEST(PivotClosedFormTest, TheAnswerIsAFunctionOfTheContactAlone) {
  const Pivot pivot;
  for (const bool islands : {true, false}) {
    for (const double other : {1e-6, 1.0, 1e6}) {
      for (const double size : {0.0, 1e-170, 1e-17, 1e-9}) {
        ProblemArrays arrays = pivot.Arrays();
        for (double& J : arrays.contacts.jacobian) J = size;
        arrays.AddTree(MatrixXd::Constant(1, 1, other), VectorXd::Constant(1, 1));
        arrays.AddRow({1}, {1});
        const ContactSolution solution =
            Solve(Checked(arrays), {.relative_tolerance = 1e-13, .islands = islands});
        EXPECT_NEAR(solution.velocity[0], pivot.SpeedByHand(), 1e-6);
        EXPECT_NEAR(solution.delassus_estimate[0], pivot.Delassus(), 1e-9 * pivot.Delassus());
      }
    }
  }
}

// Its spring presses, its friction stays within the cone, and nothing else notices.
TEST(PivotClosedFormTest, AContactThatNothingMovesHasTheForceOfItsSpring) {
  for (const DelassusRule rule : kRules) {
    for (const int dofs : {1, 3, 6}) {
      ProblemArrays arrays;
      arrays.regularization.rule = rule;
      arrays.AddTree(3 * MatrixXd::Identity(dofs, dofs), VectorXd::Ones(dofs));
      arrays.trees.initial_velocity.assign(dofs, 0);
      arrays.AddContact(0, ProblemArrays::Jacobian::Zero(3, dofs),
                        {.signed_distance = -1e-3, .stiffness = 1e4, .relaxation_time = 0.03});
      const ContactSolution solution = Solve(Checked(arrays), kTight);
      EXPECT_EQ(solution.islands[0].status, SolveStatus::kConverged);
      EXPECT_EQ(solution.delassus_estimate[0], 0);
      EXPECT_EQ(solution.velocity, arrays.trees.free_motion_velocity);
      EXPECT_NEAR(solution.impulse[2], kTimeStep * 1e4 * 1e-3, 1e-12);
      EXPECT_EQ(solution.impulse[0], 0);
    }
  }
}

}  // namespace
}  // namespace sap::test
