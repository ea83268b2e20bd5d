// Creep and sag of steps of different lengths with one reference time step, against closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "solver/solve.h"
#include "tests/support/random_constraints.h"
#include "tests/support/random_problem.h"

namespace sap::test::reference_time_step {
namespace {

using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Vector6d = Eigen::Matrix<double, 6, 1>;

constexpr SolverOptions kTight{.relative_tolerance = 1e-12};
constexpr double kReference = 0.005;                                     // h [s]
constexpr double kTimeSteps[] = {0.001, 0.005, 0.02, 0.25};              // dt [s]
constexpr double kMass = 3, kGravity = 9.81, kSlope = 0.3, kTau = 0.03;  // kg, m/s^2, rad, s
// Near-rigid stiffness times w h (h + tau), and w of a contact that moves a mass alone.
constexpr double kRigidity = 4 * std::numbers::pi * std::numbers::pi;
const double kMobility = std::sqrt(3.0) / (3 * kMass);

double Weight() { return kMass * kGravity * std::cos(kSlope); }  // N, into the slope
double Pull() { return kMass * kGravity * std::sin(kSlope); }    // N, down the slope

// A block on a slope, whose normal is z. It comes with velocity v_0, as a tree or as a body.
ProblemArrays Block(double time_step, bool is_body, const Vector3d& v_0, const Material& material) {
  ProblemArrays arrays;
  arrays.time_step = time_step;
  arrays.regularization.reference_time_step = kReference;
  const Vector3d v_star = v_0 + time_step / kMass * Vector3d(Pull(), 0, -Weight());
  if (is_body) {
    Vector6d v = Vector6d::Zero();
    v.head<3>() = v_star;
    arrays.AddBody(kMass, Vector3d(0.02, 0.03, 0.04), Vector3d::Zero(), v);
    arrays.AddBodyContact(0, -1, Vector3d::Zero(), Vector3d::UnitZ(), material);
  } else {
    arrays.AddTree(kMass * MatrixXd::Identity(3, 3), v_star);
    arrays.AddContact(0, ProblemArrays::Jacobian::Identity(3, 3), material);
  }
  return arrays;
}

// The contact is a dashpot of 1 / (sigma w h) along the slope and a spring of
// 4 pi^2 / (beta^2 w h (h + tau)) into it: creep and sag at which the block is in balance.
TEST(ReferenceTimeStepTest, ABlockCreepsAndSagsTheSameInStepsOfAnyLength) {
  constexpr double kSigma = 0.02, kBeta = 1.5;
  const double creep = kSigma * kMobility * kReference * Pull();
  const double stiffness =
      kRigidity / (kBeta * kBeta * kMobility * kReference * (kReference + kTau));
  const Material material{.signed_distance = -Weight() / stiffness,
                          .stiffness = 1e30,
                          .relaxation_time = kTau,
                          .friction = 0.8};
  for (const bool is_body : {false, true}) {
    for (const double dt : kTimeSteps) {
      SCOPED_TRACE(dt);
      ProblemArrays arrays = Block(dt, is_body, {creep, 0, 0}, material);
      arrays.regularization.sigma = kSigma;
      arrays.regularization.beta = kBeta;
      const ContactSolution solution = Solve(Checked(arrays), kTight);
      EXPECT_NEAR(solution.velocity[0], creep, 1e-9 * creep);
      EXPECT_NEAR(solution.velocity[2], 0, 1e-9 * creep);
      EXPECT_NEAR(solution.impulse[2], dt * Weight(), 1e-9 * dt * Weight());
    }
  }
}

// Friction mu N v / sqrt(v^2 + eps^2) with eps = mu sigma w N h balances the pull.
TEST(ReferenceTimeStepTest, AContactOfHuntAndCrossleyCreepsTheSameInStepsOfAnyLength) {
  constexpr double kSigma = 0.02, kFriction = 0.8;
  const double share = Pull() / (kFriction * Weight());
  const double creep =
      kFriction * kSigma * kMobility * Weight() * kReference * share / std::sqrt(1 - share * share);
  for (const double dt : kTimeSteps) {
    SCOPED_TRACE(dt);
    ProblemArrays arrays = Block(dt, false, {creep, 0, 0},
                                 {.signed_distance = 0, .stiffness = 1e5, .friction = kFriction});
    arrays.regularization.sigma = kSigma;
    arrays.regularization.stiction_speed = 1e-9;
    LawArrays& law = arrays.contacts.law;
    law.law = {static_cast<int32_t>(ContactLaw::kHuntCrossleyLagged)};
    law.hunt_crossley.elastic_force = {Weight()};
    law.hunt_crossley.dissipation = {0};
    law.hunt_crossley.lagged_normal_impulse = {dt * Weight()};
    const ContactSolution solution = Solve(Checked(arrays), kTight);
    EXPECT_NEAR(solution.velocity[0], creep, 1e-9 * creep);
    EXPECT_NEAR(solution.velocity[2], 0, 1e-9 * creep);
  }
}

// One of two rows holds a load as a spring, the other is dry friction that slips.
TEST(ReferenceTimeStepTest, RowsSagAndSlipTheSameInStepsOfAnyLength) {
  constexpr double kRowBeta = 0.3, kSlip = 0.04, kLoad = 7;
  const double slip = kSlip / kMass * kReference * kLoad;  // w is 1 / m
  const double stiffness =
      kRigidity * kMass / (kRowBeta * kRowBeta * kReference * (kReference + kTau));
  for (const double dt : kTimeSteps) {
    SCOPED_TRACE(dt);
    ProblemArrays arrays;
    arrays.time_step = dt;
    arrays.regularization.reference_time_step = kReference;
    arrays.regularization.row_beta = kRowBeta;
    const double push = dt * kLoad / kMass;
    arrays.AddTree(kMass * MatrixXd::Identity(2, 2), Eigen::Vector2d(push, slip + push));
    arrays.AddRow({0}, {1});
    arrays.AddRow({1}, {1});
    arrays.rows.position_error = {kLoad / stiffness, 0};
    arrays.rows.relaxation_time = {kTau, 0};
    arrays.rows.slip_parameter = {0, kSlip};
    const ContactSolution solution = Solve(Checked(arrays), kTight);
    EXPECT_NEAR(solution.velocity[0], 0, 1e-9 * slip);
    EXPECT_NEAR(solution.velocity[1], slip, 1e-9 * slip);
  }
}

TEST(ReferenceTimeStepTest, ThatOfTheProblemGivesTheSameBitsAsNone) {
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    ProblemArrays arrays = RandomLegalProblem(seed);
    arrays.regularization.reference_time_step = 0;
    const ContactSolution without = Solve(Checked(arrays));
    arrays.regularization.reference_time_step = arrays.time_step;
    const ContactSolution with = Solve(Checked(arrays));
    EXPECT_EQ(with.velocity, without.velocity);
    EXPECT_EQ(with.impulse, without.impulse);
    EXPECT_EQ(with.row_impulse, without.row_impulse);
  }
  // Products of so short steps are not within the range of doubles.
  ProblemArrays arrays = Block(1e-200, false, {1, 0, -1}, {.signed_distance = 0, .friction = 0.5});
  arrays.regularization.reference_time_step = 0;
  const ContactSolution without = Solve(Checked(arrays));
  arrays.regularization.reference_time_step = arrays.time_step;
  EXPECT_EQ(Solve(Checked(arrays)).velocity, without.velocity);
}

TEST(ReferenceTimeStepTest, RegularizationThatIsGivenIsTakenAsItIs) {
  ProblemArrays arrays = RandomTreesInContact(1);
  const size_t contacts = arrays.contacts.tree_a.size();
  arrays.contacts.law.regularization_t.assign(contacts, 1e-3);
  arrays.contacts.law.regularization_n.assign(contacts, 1e-2);
  arrays.AddRow({0, 2}, {1, -0.5});
  arrays.rows.regularization = {0.1};
  const ContactSolution without = Solve(Checked(arrays));
  arrays.regularization.reference_time_step = 17 * arrays.time_step;
  EXPECT_EQ(Solve(Checked(arrays)).velocity, without.velocity);
}

}  // namespace
}  // namespace sap::test::reference_time_step
